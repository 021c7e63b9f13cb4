import { Option, type Command } from "commander";
import type { RegisterCommand } from "../../client/command.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT, type ExitCode } from "../../client/failure.ts";
import { confirm, confirmName } from "../../client/prompt.ts";
import { renderTable, textCell } from "../../client/table.ts";
import type { Change, DeployTarget, InitFlags } from "../target.ts";
import { targetOf } from "../targets.ts";
import { specOf, TARGETS, Workspace, type Prepared, type TargetName } from "../workspace.ts";

const DEFAULT_NAME = "prod";

type Flags = { name: string; json?: true };
type InitOptions = Flags & InitFlags & { target: TargetName; printOnly?: true; force?: true };
type UpOptions = Flags & { yes?: true; printOnly?: true };
type DestroyFlags = Flags & { yes?: true; force?: true };

export const register: RegisterCommand = (program, context) => {
  const group = program.command("deploy").description("Deploy the engine: a cluster on this machine, or in a cloud.");
  registerInit(group, context);
  registerUp(group, context);
  registerStatus(group, context);
  registerDestroy(group, context);
  registerSupervise(group, context);
};

function registerInit(group: Command, context: CliContext): void {
  const command = withFlags(group.command("init"))
    .description("Make the workspace of a deployment; asks for what the flags leave open.")
    .addOption(new Option("--target <target>", "where it runs").choices(TARGETS).default("cloud"))
    .option("--tool <program>", "program that makes the cloud's resources: terraform or tofu")
    .option("--region <region>", "region of the cloud")
    .option("--domain <name>", "host name that clients use")
    .option("--yes", "take defaults and ask nothing")
    .option("--print-only", "show every file and command, and write nothing")
    .option("--force", "replace the settings of a deployment that exists; what it stored stays");
  withExamples(command, [
    "engine deploy init --name lab --target local --yes",
    "engine deploy init --region eu-central-1 --domain engine.example.com --print-only",
  ]).action(context.action((options: InitOptions) => init(context, options)));
}

function registerUp(group: Command, context: CliContext): void {
  const command = withFlags(group.command("up"))
    .description("Bring a deployment to what its workspace says: new, changed, or after a failure.")
    .option("--yes", "do it without a question")
    .option("--print-only", "show what would be done, and do nothing");
  withExamples(command, ["engine deploy up", "engine deploy up --name lab --yes"]).action(
    context.action((options: UpOptions) => up(context, options)),
  );
}

function registerStatus(group: Command, context: CliContext): void {
  const command = withFlags(group.command("status")).description(
    "Show how a deployment is, the version of each process, and what differs from its workspace.",
  );
  withExamples(command, ["engine deploy status --name lab --json"]).action(
    context.action((options: Flags) => status(context, options)),
  );
}

function registerDestroy(group: Command, context: CliContext): void {
  const command = withFlags(group.command("destroy"))
    .description("End a deployment. What it stored stays, unless --force is given.")
    .option("--yes", "do it without asking for the name")
    .option("--force", "delete what it stored, too");
  withExamples(command, ["engine deploy destroy --name lab"]).action(
    context.action((options: DestroyFlags) => destroy(context, options)),
  );
}

/** What `up` starts in the background: no command for people. */
function registerSupervise(group: Command, context: CliContext): void {
  group
    .command("supervise", { hidden: true })
    .requiredOption("--name <name>", "deployment")
    .action(
      context.action(async (options: Flags) => {
        const { supervise } = await import("./supervise.ts");
        return await supervise(context, await workspaceOf(context, options));
      }),
    );
}

function withFlags(command: Command): Command {
  return command.option("--name <name>", "deployment", DEFAULT_NAME).option("--json", "print JSON");
}

async function init(context: CliContext, options: InitOptions): Promise<ExitCode> {
  const workspace = await workspaceOf(context, options);
  const target = await targetOf(options.target);
  const isPrinted = options.printOnly === true;
  const mayAsk = context.deps.stdin.isTTY === true && options.yes !== true && options.json !== true;
  const request = { name: workspace.name, flags: options, context, mayAsk };
  if (isPrinted) return await printPrepared(context, options, workspace, await target.prepare(request));
  return await workspace.alone(async () => {
    if (options.force !== true && (await workspace.findSpec()) !== undefined) {
      throw new CliError(
        `${workspace.folder} exists; \`engine deploy up\` brings it up, --force replaces its settings`,
      );
    }
    const prepared = await withIdentity(workspace, target, await target.prepare(request), mayAsk);
    await workspace.create(options.target, prepared);
    const next = `engine deploy up --name ${workspace.name}`;
    const { name, folder } = workspace;
    if (options.json) await context.writeJson({ name, target: options.target, folder, next });
    else await context.writeLine(`${folder} is ready; bring it up with \`${next}\``);
    return EXIT.ok;
  });
}

/** Where a person is asked and the configuration has an app at an identity provider. */
async function withIdentity(
  workspace: Workspace,
  target: DeployTarget,
  prepared: Prepared,
  mayAsk: boolean,
): Promise<Prepared> {
  if (!mayAsk) return prepared;
  const { connectIdentity, managementApp } = await import("../idp/connect.ts");
  const { context, name } = workspace;
  const app = await managementApp(context);
  if (app === undefined) return prepared;
  return await target.addIdentity(workspace, prepared, (urls) => connectIdentity(context, { app, name, urls }));
}

async function printPrepared(
  context: CliContext,
  options: InitOptions,
  workspace: Workspace,
  { settings, files, commands }: Prepared,
): Promise<ExitCode> {
  const spec = specOf(workspace.name, options.target, settings);
  const shown = [
    ...files.map(({ path, text, isSecret }) => ({ path: workspace.path(path), text: isSecret ? undefined : text })),
    { path: workspace.path("deployment.json"), text: `${JSON.stringify(spec, undefined, 2)}\n` },
  ];
  if (options.json) {
    await context.writeJson({ files: shown.map(({ path, text = null }) => ({ path, text })), commands });
    return EXIT.ok;
  }
  for (const { path, text } of shown) {
    await context.writeLine(`# ${path}`);
    await context.writeLine(text ?? "(secrets, which are made when this is written)\n");
  }
  for (const line of commands) await context.writeLine(`$ ${line}`);
  return EXIT.ok;
}

async function up(context: CliContext, options: UpOptions): Promise<ExitCode> {
  const workspace = await workspaceOf(context, options);
  await workspace.spec();
  return await workspace.alone(async () => {
    const target = await targetOf((await workspace.spec()).target);
    const plan = await target.plan(workspace);
    if (options.printOnly) {
      if (options.json) await context.writeJson(plan);
      else for (const line of [...plan.changes.map(changeText), ...plan.commands]) await context.writeLine(line);
      return EXIT.ok;
    }
    if (plan.changes.length > 0) {
      for (const change of plan.changes) context.note(changeText(change));
      if (options.yes !== true) await confirm(context, `Do this to ${workspace.name}?`);
    }
    const { url, adminToken } = await target.apply(workspace, plan);
    if (options.json) {
      await context.writeJson({ url, admin_token: adminToken ?? null, changes: plan.changes });
      return EXIT.ok;
    }
    await context.writeLine(`${workspace.name} is healthy at ${url}`);
    if (adminToken !== undefined) await context.writeLine(`admin token (shown this once): ${adminToken}`);
    return EXIT.ok;
  });
}

function changeText({ action, subject, reason }: Change): string {
  return `${action} ${subject}: ${reason}`;
}

async function status(context: CliContext, options: Flags): Promise<ExitCode> {
  const workspace = await workspaceOf(context, options);
  const spec = await workspace.spec();
  const { state, url, processes, drift } = await (await targetOf(spec.target)).status(workspace);
  const code = state === "healthy" && drift.length === 0 ? EXIT.ok : EXIT.failed;
  if (options.json) {
    const listed = processes.map(({ name, state: its, version = null, processId: pid = null, url: at = null }) => {
      return { name, state: its, version, pid, url: at };
    });
    await context.writeJson({
      name: spec.name,
      target: spec.target,
      state,
      url: url ?? null,
      processes: listed,
      drift,
    });
    return code;
  }
  await context.writeLine(`${spec.name} (${spec.target}) is ${state}${url === undefined ? "" : ` at ${url}`}`);
  if (processes.length > 0) {
    const rows = processes.map(({ name, state: its, version = "-", processId = "-", url: at = "-" }) =>
      [name, its, version, String(processId), at].map(textCell),
    );
    await context.writeLine(renderTable(["PROCESS", "STATE", "VERSION", "PID", "ADDRESS"], rows, context.style));
  }
  for (const line of drift) await context.writeLine(`drift: ${line}`);
  return code;
}

async function destroy(context: CliContext, options: DestroyFlags): Promise<ExitCode> {
  const workspace = await workspaceOf(context, options);
  await workspace.spec();
  return await workspace.alone(async () => {
    const target = await targetOf((await workspace.spec()).target);
    const how = { isForced: options.force === true };
    for (const line of await target.losses(workspace, how)) context.note(line);
    if (options.yes !== true) await confirmName(context, `Destroy ${workspace.name}?`, workspace.name);
    await target.destroy(workspace, how);
    if (how.isForced) await workspace.remove();
    const { name, folder } = workspace;
    if (options.json) await context.writeJson({ name, destroyed: true, kept: how.isForced ? null : folder });
    else await context.writeLine(how.isForced ? `${name} is gone` : `${name} has ended; its data stays`);
    return EXIT.ok;
  });
}

async function workspaceOf(context: CliContext, { name }: Flags): Promise<Workspace> {
  const { config } = await context.loadConfig({});
  return new Workspace(context, config.home, name);
}
