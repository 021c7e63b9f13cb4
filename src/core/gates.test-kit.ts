import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { lacking, type CapabilityName } from "./capabilities.test-kit.ts";

/** Tests that need what a machine may lack. Where it does they are skipped, with a line that says what to install. */

const told = new Set<string>();

/** For `test.skipIf` and `describe.skipIf`: whether this machine lacks one of them. A line says which. */
export function lacks(...names: readonly CapabilityName[]): boolean {
  const reason = lacking(...names);
  if (reason !== undefined) tell(reason);
  return reason !== undefined;
}

/**
 * What one of the installers in `.ci/` prints: the path of a program that it has installed outside of the repository, at
 * the first call. Undefined, with a line that says why, where the machine lacks what it needs, or where it fails for want
 * of a network.
 */
export function installedBy(script: string, ...needed: readonly CapabilityName[]): string | undefined {
  if (lacks(...needed)) return undefined;
  const installer = fileURLToPath(new URL(`../../.ci/${script}`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(installer, { encoding: "utf8", timeout: 600_000 });
  if (status === 0) return stdout.trim();
  tell(`.ci/${script} failed: ${stderr.trim()}`);
  return undefined;
}

/** Once per file. */
function tell(reason: string): void {
  if (!told.has(reason)) process.stderr.write(`tests are skipped: ${reason}\n`);
  told.add(reason);
}
