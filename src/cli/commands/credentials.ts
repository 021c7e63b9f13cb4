import type { Command } from "commander";
import { callApi, fieldCell, fieldText, listIn, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import { CATALOG_FLAG, type CatalogFlags } from "../../client/catalog.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { confirm, readInput } from "../../client/prompt.ts";
import { rotateCredentials } from "../rotate-credentials.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

const CREDENTIALS = "/v1/credentials";
const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("credentials").description("Manage stored credentials; their secrets are never shown.");
  registerList(group, context);
  registerShow(group, context);
  registerCreate(group, context);
  registerShare(group, context);
  registerDelete(group, context);
  registerRotate(group, context);
};

function registerList(group: Command, context: CliContext): void {
  const command = withApiFlags(group.command("list").description("List the credentials that you may use."));
  withExamples(command, ["engine credentials list"]).action(
    context.action(async (flags: ApiFlags) => {
      const all = listIn(await callApi(context, flags, "GET", CREDENTIALS), "credentials");
      const header = ["ID", "LABEL", "KIND", "PREVIEW", "STATUS", "DATABASES", "OWNER", "SHARED"];
      if (flags.json) await context.writeJson(all);
      else if (all.length === 0) await context.writeLine("there are no credentials");
      else await context.writeLine(renderTable(header, all.map(row), context.style));
      return EXIT.ok;
    }),
  );
}

function row({ id, label, kind, preview, status, databases, owned_by: owner, shared }: Json) {
  return [id, label, kind, preview, status, databases ?? "all", owner, shared === true ? "yes" : "no"].map(fieldCell);
}

function registerShow(group: Command, context: CliContext): void {
  const command = group
    .command("show")
    .description("Show one credential, without its secret.")
    .argument("<id>", "id of the credential");
  withExamples(withApiFlags(command), [`engine credentials show ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const found = await callApi(context, flags, "GET", pathOf(id));
      if (flags.json) await context.writeJson(found);
      else for (const [name, value] of Object.entries(found)) await context.writeLine(fieldLine(name, value));
      return EXIT.ok;
    }),
  );
}

const FIELD_WIDTH = 15;

function fieldLine(name: string, value: unknown): string {
  return visible(`${name.replaceAll("_", " ").padEnd(FIELD_WIDTH)}${fieldText(value)}`);
}

function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description("Store a credential. Its value is JSON on standard input, so that no secret is in the command line.")
    .argument("<label>", "what it is for")
    .option("--metadata <json>", "JSON object that is stored beside it and shown as it is");
  withExamples(withApiFlags(command), [
    `printf '{"kind":"pat","token":"%s"}' "$TOKEN" | engine credentials create github`,
    `engine credentials create warehouse --metadata '{"team":"data"}' < credential.json`,
  ]).action(context.action((label: string, flags: CreateFlags) => create(context, label, flags)));
}

type CreateFlags = ApiFlags & { metadata?: string };

async function create(context: CliContext, label: string, flags: CreateFlags): Promise<number> {
  const metadata = flags.metadata === undefined ? {} : { metadata: jsonIn(flags.metadata, "--metadata") };
  if (context.deps.stdin.isTTY === true) context.note("reading JSON from the terminal; end it with Ctrl-D");
  const value = jsonIn(await readInput(context, "a credential"), "standard input");
  const made = await callApi(context, flags, "POST", CREDENTIALS, { label, value, ...metadata });
  if (flags.json) await context.writeJson(made);
  else await context.writeLine(visible(`credential ${fieldText(made["id"])} stored: ${fieldText(made["preview"])}`));
  return EXIT.ok;
}

/** What does not parse is not repeated: it may be a secret. */
function jsonIn(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError(`${what} is not JSON`, EXIT.usage);
  }
}

function registerShare(group: Command, context: CliContext): void {
  const command = group
    .command("share")
    .description("Let others use a credential: their jobs and sandboxes have it, and nobody is shown its secret.")
    .argument("<id>", "id of the credential")
    .option("--off", "from now on only its owner may use it");
  withExamples(withApiFlags(command), [`engine credentials share ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags & { off?: true }) => {
      const shared = flags.off !== true;
      const found = await callApi(context, flags, "PATCH", pathOf(id), { shared });
      if (flags.json) await context.writeJson(found);
      else await context.writeLine(visible(`credential ${id} is ${shared ? "shared" : "its owner's alone"}`));
      return EXIT.ok;
    }),
  );
}

function registerDelete(group: Command, context: CliContext): void {
  const command = group
    .command("delete")
    .description("Delete a credential.")
    .argument("<id>", "id of the credential")
    .option("--yes", "do not ask");
  withExamples(withApiFlags(command), [`engine credentials delete ${EXAMPLE_ID} --yes`]).action(
    context.action(async (id: string, flags: ApiFlags & { yes?: true }) => {
      if (flags.yes !== true) await confirm(context, `Delete the credential ${visible(id)}?`);
      const answer = await callApi(context, flags, "DELETE", pathOf(id));
      if (flags.json) await context.writeJson(answer);
      else await context.writeLine(visible(`credential ${id} deleted`));
      return EXIT.ok;
    }),
  );
}

function registerRotate(group: Command, context: CliContext): void {
  const command = group
    .command("rotate")
    .description(
      "Seal all credentials, variables of sandboxes and refresh tokens of browser sessions with ENGINE_SECRET_KEY, those " +
        "of ENGINE_SECRET_KEYS_FORMER among them (talks to the catalog directly).",
    )
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, ['ENGINE_SECRET_KEY="$NEW" ENGINE_SECRET_KEYS_FORMER="$OLD" engine credentials rotate']).action(
    context.action(async (flags: CatalogFlags & { json?: true }) => {
      const { rotated, sandboxes, sessions, failed } = await rotateCredentials(context, flags);
      if (flags.json) await context.writeJson({ rotated, sandboxes, sessions, failed });
      else await context.writeLine(`${rotated} ${rotated === 1 ? "credential was" : "credentials were"} sealed anew`);
      if (!flags.json && sandboxes > 0)
        await context.writeLine(`and the variables of ${sandboxes} ${sandboxes === 1 ? "sandbox" : "sandboxes"}`);
      if (!flags.json && sessions > 0)
        await context.writeLine(
          `and the refresh tokens of ${sessions} browser ${sessions === 1 ? "session" : "sessions"}`,
        );
      if (failed.length === 0) return EXIT.ok;
      throw new CliError(`these do not open with any key that is set, and stay as they are: ${failed.join(", ")}`);
    }),
  );
}

function pathOf(id: string): string {
  return `${CREDENTIALS}/${encodeURIComponent(id)}`;
}
