import { Option, type Command } from "commander";
import { CALLER_ROLES } from "../../config/kinds.ts";
import { callApi, fieldCell, listIn, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { askPassword, confirm } from "../../client/prompt.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

type PasswordFlags = ApiFlags & { passwordStdin?: true };

const USERS = "/v1/admin/users";
const PASSWORD_FLAG = ["--password-stdin", "read the password from standard input"] as const;

export const register: RegisterCommand = (program, context) => {
  const group = program.command("user").description("Manage the users of a server; needs the role admin.");
  registerList(group, context);
  registerCreate(group, context);
  registerPassword(group, context);
  registerRole(group, context);
  registerDelete(group, context);
};

function registerList(group: Command, context: CliContext): void {
  const command = withApiFlags(group.command("list").description("List the users."));
  withExamples(command, ["engine user list"]).action(
    context.action(async (flags: ApiFlags) => {
      const users = listIn(await callApi(context, flags, "GET", USERS), "users");
      if (flags.json) await context.writeJson(users);
      else if (users.length === 0) await context.writeLine("there are no users");
      else await context.writeLine(renderTable(["NAME", "ROLE", "SOURCE", "CREATED"], users.map(row), context.style));
      return EXIT.ok;
    }),
  );
}

function row({ username, role, source, created_at: created }: Json) {
  return [username, role, source, created].map(fieldCell);
}

function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description("Create a user. The password is asked for on a terminal.")
    .argument("<name>", "name of the user")
    .addOption(new Option("--role <role>", "what the user may do").choices(CALLER_ROLES).default("read"))
    .option(...PASSWORD_FLAG);
  withExamples(withApiFlags(command), [
    "engine user create ann --role write",
    "engine user create ci --password-stdin < password.txt",
  ]).action(
    context.action(async (username: string, flags: PasswordFlags & { role: string }) => {
      const password = await newPassword(context, flags);
      const user = await callApi(context, flags, "POST", USERS, { username, password, role: flags.role });
      return await report(context, flags, user, `user ${username} created with the role ${flags.role}`);
    }),
  );
}

function registerPassword(group: Command, context: CliContext): void {
  const command = group
    .command("passwd")
    .description("Set the password of a user, and end their sessions.")
    .argument("<name>", "name of the user")
    .option(...PASSWORD_FLAG);
  withExamples(withApiFlags(command), ["engine user passwd ann"]).action(
    context.action(async (name: string, flags: PasswordFlags) => {
      const password = await newPassword(context, flags);
      const user = await callApi(context, flags, "POST", `${pathOf(name)}/password`, { password });
      return await report(context, flags, user, `the password of ${name} is set, and their sessions are over`);
    }),
  );
}

function registerRole(group: Command, context: CliContext): void {
  const command = group
    .command("set-role")
    .description("Change the role of a user. Their sessions and tokens have it at once.")
    .argument("<name>", "name of the user")
    .argument("<role>", `one of ${CALLER_ROLES.join(", ")}`);
  withExamples(withApiFlags(command), ["engine user set-role ann admin"]).action(
    context.action(async (name: string, role: string, flags: ApiFlags) => {
      const user = await callApi(context, flags, "PATCH", pathOf(name), { role });
      return await report(context, flags, user, `user ${name} has the role ${role}`);
    }),
  );
}

function registerDelete(group: Command, context: CliContext): void {
  const command = group
    .command("delete")
    .description("Delete a user, with their sessions and tokens.")
    .argument("<name>", "name of the user")
    .option("--yes", "do not ask");
  withExamples(withApiFlags(command), ["engine user delete ann", "engine user delete ann --yes"]).action(
    context.action(async (name: string, flags: ApiFlags & { yes?: true }) => {
      if (flags.yes !== true) await confirm(context, `Delete the user ${visible(name)}?`);
      const deleted = await callApi(context, flags, "DELETE", pathOf(name));
      return await report(context, flags, deleted, `user ${name} deleted`);
    }),
  );
}

function newPassword(context: CliContext, { passwordStdin }: PasswordFlags): Promise<string> {
  return askPassword(context, { fromStdin: passwordStdin === true, isNew: true });
}

function pathOf(name: string): string {
  return `${USERS}/${encodeURIComponent(name)}`;
}

async function report(context: CliContext, { json }: ApiFlags, answer: Json, text: string): Promise<number> {
  if (json) await context.writeJson(answer);
  else await context.writeLine(visible(text));
  return EXIT.ok;
}
