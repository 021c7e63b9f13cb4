import { rm } from "node:fs/promises";
import { z } from "zod";
import { CliError } from "../../client/failure.ts";
import type { Random } from "../../core/random.ts";
import type { Workspace } from "../workspace.ts";

/** How far a cloud deployment has come, and its secrets until it is healthy for the first time. */

const STATE_FILE = "cloud/state.json";
/**
 * The modules write secrets when they make them, into Secrets Manager, and need them never again. An `up` that fails
 * half-way has written some, so the next one must have the same; they are deleted when a deployment is up.
 */
const SECRETS_FILE = "cloud/secrets.json";

const stateSchema = z.strictObject({
  format: z.literal(1),
  /** `begun`: an `up` was tried and none has succeeded. `stopped`: destroyed, with its data kept. */
  phase: z.enum(["begun", "up", "stopped"]),
});
export type Phase = z.infer<typeof stateSchema>["phase"];

const secretsSchema = z.strictObject({
  catalog_password: z.string().min(24),
  secret_key: z.string().min(44),
  internal_bearer: z.string().min(24),
  admin_token: z.string().min(24),
  scrape_token: z.string().min(24),
});
/** As the modules' variable `secrets` has them. */
export type CloudSecrets = z.infer<typeof secretsSchema>;

/** Undefined before the first `up`. */
export async function phaseOf(workspace: Workspace): Promise<Phase | undefined> {
  return (await workspace.readJson(STATE_FILE, stateSchema))?.phase;
}

export async function setPhase(workspace: Workspace, phase: Phase): Promise<void> {
  await workspace.writeJson(STATE_FILE, { format: 1, phase });
}

/** Undefined when the deployment has been up. @throws CliError where they are lost half-way */
export async function findSecrets(workspace: Workspace, phase: Phase | undefined): Promise<CloudSecrets | undefined> {
  const secrets = await workspace.readJson(SECRETS_FILE, secretsSchema);
  if (secrets !== undefined || phase !== "begun") return secrets;
  throw new CliError(
    `${workspace.path(SECRETS_FILE)} is gone before the deployment was up: put it back, or begin again after \`engine deploy destroy --force --name ${workspace.name}\``,
  );
}

/** Made once: before the first `up`. */
export async function makeSecrets(workspace: Workspace, random: Random): Promise<CloudSecrets> {
  const bytes = (encoding: "base64url" | "base64") => Buffer.from(random.fill(new Uint8Array(32))).toString(encoding);
  const secrets = {
    catalog_password: bytes("base64url"),
    secret_key: bytes("base64"),
    internal_bearer: bytes("base64url"),
    admin_token: bytes("base64url"),
    scrape_token: bytes("base64url"),
  };
  await workspace.writeJson(SECRETS_FILE, secrets);
  return secrets;
}

export async function forgetSecrets(workspace: Workspace): Promise<void> {
  await rm(workspace.path(SECRETS_FILE), { force: true });
}
