import { Option, type Command } from "commander";
import { CALLER_ROLES } from "../../config/kinds.ts";
import { callApi, fieldCell, fieldText, listIn, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

type CreateFlags = ApiFlags & { role: string; databases?: string; expires?: string };

const TOKENS = "/v1/auth/tokens";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("token").description("Manage long-lived tokens for programs.");
  registerList(group, context);
  registerCreate(group, context);
  registerRevoke(group, context);
};

function registerList(group: Command, context: CliContext): void {
  const command = withApiFlags(group.command("list").description("List your tokens; an admin sees those of all."));
  withExamples(command, ["engine token list"]).action(
    context.action(async (flags: ApiFlags) => {
      const tokens = listIn(await callApi(context, flags, "GET", TOKENS), "tokens");
      const header = ["ID", "NAME", "TOKEN", "OWNER", "ROLE", "DATABASES", "EXPIRES", "LAST USED"];
      if (flags.json) await context.writeJson(tokens);
      else if (tokens.length === 0) await context.writeLine("there are no tokens");
      else await context.writeLine(renderTable(header, tokens.map(row), context.style));
      return EXIT.ok;
    }),
  );
}

function row({ id, name, preview, owner, role, databases, expires_at: expires, last_used_at: used }: Json) {
  const ends = expires ?? "never";
  return [id, name, preview, owner, role, databases ?? "all", ends, used ?? "never"].map(fieldCell);
}

function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description("Make a token, and print it: this once. It does no more than you may do yourself.")
    .argument("<name>", "what it is for")
    .addOption(new Option("--role <role>", "what the token may do").choices(CALLER_ROLES).default("read"))
    .option("--databases <names>", "databases that it is limited to, with commas between; yours by default")
    .option("--expires <time>", "when it ends (RFC 3339); when it is revoked by default");
  withExamples(withApiFlags(command), [
    "engine token create ci --role write --databases logs,traces --expires 2027-01-01T00:00:00Z",
    'ENGINE_TOKEN="$(engine token create report)" ./report.sh',
  ]).action(context.action((name: string, flags: CreateFlags) => create(context, name, flags)));
}

async function create(context: CliContext, name: string, flags: CreateFlags): Promise<number> {
  const databases = flags.databases?.split(",").map((database) => database.trim());
  const made = await callApi(context, flags, "POST", TOKENS, {
    name,
    role: flags.role,
    ...(databases === undefined ? {} : { databases }),
    ...(flags.expires === undefined ? {} : { expires_at: flags.expires }),
  });
  if (flags.json) {
    await context.writeJson(made);
    return EXIT.ok;
  }
  context.note(visible(`token ${fieldText(made["id"])} made; it is shown this once`));
  await context.writeLine(visible(fieldText(made["token"])));
  return EXIT.ok;
}

function registerRevoke(group: Command, context: CliContext): void {
  const command = group
    .command("revoke")
    .description("Revoke a token: it is good for nothing from then on.")
    .argument("<id>", "id of the token, as `engine token list` shows it");
  withExamples(withApiFlags(command), ["engine token revoke 01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11"]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const answer = await callApi(context, flags, "DELETE", `${TOKENS}/${encodeURIComponent(id)}`);
      if (flags.json) await context.writeJson(answer);
      else await context.writeLine(visible(`token ${id} revoked`));
      return EXIT.ok;
    }),
  );
}
