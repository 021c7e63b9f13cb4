import { rm } from "node:fs/promises";
import { z } from "zod";
import { CliError } from "../../client/failure.ts";
import { readHealth, type Health } from "../../client/health.ts";
import { sleep } from "../../core/clock.ts";
import type { Applied, Change, DeploymentStatus, DeployTarget, DestroyOptions, Plan } from "../target.ts";
import type { Workspace } from "../workspace.ts";
import { openRootModule } from "./root-module.ts";
import { addIdentity, prepareCloud, settingsOf, variablesOf, type CloudSettings, type Variables } from "./settings.ts";
import { findSecrets, forgetSecrets, makeSecrets, phaseOf, setPhase, type CloudSecrets, type Phase } from "./state.ts";
import type { Tool } from "./tool.ts";

/** A cluster on AWS: the modules of `terraform/`, run by Terraform or OpenTofu. */
export const CLOUD_TARGET: DeployTarget = { prepare: prepareCloud, addIdentity, plan, apply, status, losses, destroy };

const PLAN_FILE = "cloud/plan";
const STATUS_PLAN_FILE = "cloud/status-plan";
const POLL_MS = 5_000;
/** From services that were made to servers that answer: images are fetched, the catalog's user is made, names spread. */
const HEALTH_TIMEOUT_MS = 15 * 60_000;
/** What `plan -detailed-exitcode` says: nothing to do, or something. */
const PLAN_CODES = { same: 0, differs: 2 } as const;

type Loaded = {
  settings: CloudSettings;
  variables: Variables;
  phase: Phase | undefined;
  /** Until the deployment was up for the first time. */
  secrets: CloudSecrets | undefined;
};

async function load(workspace: Workspace): Promise<Loaded> {
  const settings = settingsOf(workspace, await workspace.spec());
  const variables = await variablesOf(workspace);
  const phase = await phaseOf(workspace);
  return { settings, variables, phase, secrets: await findSecrets(workspace, phase) };
}

async function plan(workspace: Workspace): Promise<Plan> {
  const loaded = await load(workspace);
  if (loaded.phase === undefined) loaded.secrets ??= await makeSecrets(workspace, workspace.context.deps.random);
  const { tool, variables } = await openRootModule(workspace, loaded);
  const file = workspace.path(PLAN_FILE);
  const { code } = await tool.run(
    ["plan", "-no-color", "-lock-timeout=10s", "-detailed-exitcode", `-out=${file}`, ...variables],
    { codes: Object.values(PLAN_CODES) },
  );
  const commands = [`${tool.name} apply ${file}`];
  if (code === PLAN_CODES.differs) return { changes: await changesOf(tool, file), commands };
  await rm(file, { force: true });
  return { changes: [], commands: [] };
}

const planSchema = z.looseObject({
  resource_changes: z
    .array(z.looseObject({ address: z.string(), change: z.looseObject({ actions: z.array(z.string()) }) }))
    .default([]),
});

async function changesOf(tool: Tool, file: string): Promise<Change[]> {
  const { stdout } = await tool.run(["show", "-json", "-no-color", file]);
  const { resource_changes: listed } = planSchema.parse(JSON.parse(stdout));
  return listed.flatMap(({ address: subject, change: { actions } }): Change[] => {
    const has = (action: string) => actions.includes(action);
    if (has("create") && has("delete")) return [{ action: "change", subject, reason: "it is made anew" }];
    if (has("create")) return [{ action: "create", subject, reason: "new" }];
    if (has("delete")) return [{ action: "remove", subject, reason: "no part of the deployment any more" }];
    return has("update") ? [{ action: "change", subject, reason: "its arguments differ" }] : [];
  });
}

async function apply(workspace: Workspace, { commands }: Plan): Promise<Applied> {
  const loaded = await load(workspace);
  const { settings, variables, phase, secrets } = loaded;
  const { tool } = await openRootModule(workspace, loaded);
  if (phase === undefined) await setPhase(workspace, "begun");
  // Where outputs alone differ there are no changes, and yet something to apply.
  if (commands.length > 0) {
    await tool.run(["apply", "-no-color", "-lock-timeout=10s", workspace.path(PLAN_FILE)], { isShown: true });
    await rm(workspace.path(PLAN_FILE), { force: true });
  }
  const { stdout } = await tool.run(["output", "-json", "-no-color"]);
  const { url, balancer } = outputsSchema.parse(JSON.parse(stdout));
  if (variables.zone_id === undefined) {
    workspace.context.note(`${variables.domain} has to be an alias of ${balancer.value} in DNS`);
  }
  await waitForHealth(workspace, settings.probeUrl ?? url.value);
  await setPhase(workspace, "up");
  await forgetSecrets(workspace);
  return { url: url.value, adminToken: secrets?.admin_token };
}

const outputsSchema = z.looseObject({
  url: z.looseObject({ value: z.string() }),
  balancer: z.looseObject({ value: z.string() }),
});

/** @throws CliError that says what was the matter last */
async function waitForHealth(workspace: Workspace, url: string): Promise<void> {
  const { clock } = workspace.context.deps;
  const untilMs = clock.monotonicMs() + HEALTH_TIMEOUT_MS;
  for (;;) {
    const health = await healthOf(workspace, url);
    if (!(health instanceof CliError) && health.status === "ok") return;
    if (clock.monotonicMs() > untilMs) {
      const last = health instanceof CliError ? health.message : `it is ${health.status}`;
      throw new CliError(
        `everything is made, and ${url} is not healthy after ${HEALTH_TIMEOUT_MS / 60_000} min (${last}): see whether its name is in DNS and the logs /engine/${workspace.name}/… in CloudWatch, and run \`engine deploy up\` again`,
      );
    }
    await sleep(clock, POLL_MS);
  }
}

async function healthOf(workspace: Workspace, url: string): Promise<Health | CliError> {
  try {
    return await readHealth(workspace.context, { url, origin: "the deployment" });
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
}

async function status(workspace: Workspace): Promise<DeploymentStatus> {
  const none = { url: undefined, processes: [] };
  const phase = await phaseOf(workspace);
  if (phase === undefined) return { ...none, state: "not deployed", drift: ["nothing was brought up yet"] };
  if (phase === "stopped") return { ...none, state: "stopped", drift: [] };
  const loaded = await load(workspace);
  const { tool, variables } = await openRootModule(workspace, loaded);
  const file = workspace.path(STATUS_PLAN_FILE);
  // It only looks: whoever changes things meanwhile keeps the lock.
  const args = ["plan", "-no-color", "-lock=false", "-detailed-exitcode", `-out=${file}`, ...variables];
  const { code } = await tool.run(args, { codes: Object.values(PLAN_CODES) });
  const changes = code === PLAN_CODES.differs ? await changesOf(tool, file) : [];
  await rm(file, { force: true });
  const drift = changes.map(({ action, subject, reason }) => `${action} ${subject}: ${reason}`);
  const url = `https://${loaded.variables.domain}`;
  const health = await healthOf(workspace, loaded.settings.probeUrl ?? url);
  const [state, version] =
    health instanceof CliError ? ["does not answer", undefined] : [health.status, health.version];
  // Others than edges are reached by edges alone: CloudWatch and `engine status` of the deployment say how they are.
  const processes = [{ name: "edge", state, version, processId: undefined, url }];
  return { state: state === "ok" ? "healthy" : "degraded", url, processes, drift };
}

async function losses(workspace: Workspace, { isForced }: DestroyOptions): Promise<string[]> {
  if ((await phaseOf(workspace)) === undefined) return ["nothing was brought up yet"];
  const { bucket, name } = await variablesOf(workspace);
  if (!isForced) {
    return [
      `all servers and sandbox nodes of ${name} end; \`engine deploy up\` starts them again`,
      "bucket, catalog, secrets, network, balancers and logs stay, and are paid for",
    ];
  }
  return [
    `everything of ${name} at AWS is deleted: servers, the bucket ${bucket} with all objects, the catalog with all databases, secrets, logs`,
    `a last snapshot of the catalog stays: ${name}-catalog-final`,
  ];
}

/** Servers, nodes, and what scrapes them. Whatever depends on them goes too, and nothing with content does. */
const RUNNING = /\.module\.(role|sandbox_nodes|monitoring)\[.*\]\.(aws_ecs_service|aws_autoscaling_group)\./;
/** Resources that refuse to be deleted, or keep their content, until their arguments say otherwise. */
const PROTECTED = /\.(aws_lb|aws_db_instance|aws_s3_bucket|aws_secretsmanager_secret)\./;
const UNPROTECTED = ["-var=deletion_protection=false", "-var=force_destroy=true"];

async function destroy(workspace: Workspace, { isForced }: DestroyOptions): Promise<void> {
  if ((await phaseOf(workspace)) === undefined) return;
  const settings = settingsOf(workspace, await workspace.spec());
  const variables = await variablesOf(workspace);
  // Secrets that are gone are none that could be written again.
  const secrets = await findSecrets(workspace, undefined);
  const root = await openRootModule(workspace, { settings, variables, secrets });
  const addresses = (await root.tool.run(["state", "list"])).stdout.split("\n").filter((line) => line !== "");
  const flags = ["-auto-approve", "-no-color", "-lock-timeout=10s", ...root.variables];
  const targets = (kind: RegExp) => addresses.filter((one) => kind.test(one)).map((one) => `-target=${one}`);
  if (!isForced) {
    const running = targets(RUNNING);
    if (running.length > 0) await root.tool.run(["apply", "-destroy", ...flags, ...running], { isShown: true });
    await setPhase(workspace, "stopped");
    return;
  }
  const guarded = targets(PROTECTED);
  // Only what is there: without targets a deployment that was made by half would be completed first.
  if (guarded.length > 0) await root.tool.run(["apply", ...flags, ...UNPROTECTED, ...guarded], { isShown: true });
  await root.tool.run(["apply", "-destroy", ...flags, ...UNPROTECTED], { isShown: true });
}
