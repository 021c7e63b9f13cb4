import { chmod, cp, mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { packageFolder } from "../../core/distribution.ts";
import type { Workspace } from "../workspace.ts";
import { VARIABLES_FILE, type CloudSettings, type Variables } from "./settings.ts";
import type { CloudSecrets } from "./state.ts";
import { Tool } from "./tool.ts";

/**
 * The root module of a deployment: a copy of the bundled `terraform/envs/small` with the modules that it takes, in
 * `cloud/source/`. It is made again by every command, so that the modules are always those of the program; what has to stay
 * (state, providers, their hashes) is beside it.
 */

const SOURCE = "cloud/source";
const ROOT = `${SOURCE}/terraform/envs/small`;
const LOCK_FILE = ".terraform.lock.hcl";
const KEPT_LOCK_FILE = "cloud/terraform.lock.hcl";
const PARTS = ["terraform/aws", "terraform/modules", "terraform/envs/small", "deploy/prometheus", "deploy/systemd"];

type RootModule = {
  tool: Tool;
  /** What every command of the tool needs that reads variables. */
  variables: readonly string[];
};

type RootOptions = {
  settings: CloudSettings;
  variables: Variables;
  secrets: CloudSecrets | undefined;
};

/** Writes it, and makes the tool ready in it. @throws CliError */
export async function openRootModule(workspace: Workspace, options: RootOptions): Promise<RootModule> {
  const { settings, variables, secrets } = options;
  const { context } = workspace;
  await writeSources(workspace);
  const backend = backendOf(workspace, settings, variables);
  await workspace.writeJson(`${ROOT}/backend.tf.json`, { terraform: { backend } });
  const tool = new Tool(settings.tool, context, workspace.path(ROOT), {
    TF_DATA_DIR: workspace.path("cloud/data"),
    // Without them TF_VAR_secrets of the shell stays: with it a user writes the secrets again (docs/terraform.md).
    ...(secrets === undefined ? {} : { TF_VAR_secrets: JSON.stringify(secrets) }),
  });
  await tool.checkVersion();
  await tool.run(["init", "-no-color"]);
  const locked = await workspace.read(`${ROOT}/${LOCK_FILE}`);
  if (locked !== undefined) await workspace.write(KEPT_LOCK_FILE, locked);
  return { tool, variables: [`-var-file=${workspace.path(VARIABLES_FILE)}`] };
}

async function writeSources(workspace: Workspace): Promise<void> {
  await mkdir(workspace.path("cloud"), { recursive: true, mode: 0o700 });
  await rm(workspace.path(SOURCE), { recursive: true, force: true });
  for (const part of PARTS) {
    const folder = workspace.path(`${SOURCE}/${part}`);
    await cp(join(packageFolder(), part), folder, { recursive: true, filter: isOfModules });
    // Copies have the modes of what was installed, which may be nobody's to write.
    await chmod(folder, 0o700);
  }
  const locked = await workspace.read(KEPT_LOCK_FILE);
  if (locked !== undefined) await workspace.write(`${ROOT}/${LOCK_FILE}`, locked);
}

/** In a checkout there may be what somebody's own runs left. Sizes are in the deployment's own variables. */
function isOfModules(path: string): boolean {
  return !/^(\.terraform.*|.*\.tfstate.*|.*\.tfvars.*|tests|plan)$/.test(basename(path));
}

function backendOf(workspace: Workspace, { stateBucket }: CloudSettings, { region }: Variables) {
  if (stateBucket === null) return { local: { path: workspace.path("cloud/terraform.tfstate") } };
  const key = `engine/${workspace.name}/terraform.tfstate`;
  return { s3: { bucket: stateBucket, key, region, encrypt: true, use_lockfile: true } };
}
