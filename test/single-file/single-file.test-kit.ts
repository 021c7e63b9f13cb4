import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cleanEnv } from "../support/engine.ts";

const run = promisify(execFile);
const repository = fileURLToPath(new URL("../..", import.meta.url));
/** Packs fastest. */
const LEVEL = "1";

/**
 * Makes the single file for this machine in a folder of its own, of the bundle and the packages that are there.
 * `umask`: under which it is made.
 */
export async function buildSingleFile(umask: string): Promise<{ file: string; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "engine-single-file-"));
  const packages = join(repository, "node_modules");
  const words = ["--arch", process.arch, "--out", join(folder, "out"), "--level", LEVEL, "--packages", packages];
  const script = join(repository, "scripts/release/single-file/build.ts");
  const { stdout } = await run("sh", ["-c", `umask ${umask}; exec "$@"`, "sh", process.execPath, script, ...words], {
    env: { ...cleanEnv(), NODE_OPTIONS: "--disable-warning=ExperimentalWarning" },
  });
  return { file: stdout.trim().split("\n").at(-1) ?? "", folder };
}

export const digestOf = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

export type Outcome = { code: number; stdout: string; stderr: string };

export type StartOptions = { env?: Record<string, string>; uid?: number; prefix?: readonly string[] };

/** Runs the file to its end, with no variables but these. */
export async function runFile(file: string, argv: readonly string[], options: StartOptions = {}): Promise<Outcome> {
  const [command = "", ...args] = [...(options.prefix ?? []), file, ...argv];
  const as = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid };
  const env = { PATH: process.env["PATH"] ?? "", ...options.env };
  try {
    return { code: 0, ...(await run(command, args, { env, cwd: "/", ...as })) };
  } catch (error) {
    const { code, stdout, stderr } = error as Outcome;
    if (typeof code !== "number") throw error;
    return { code, stdout, stderr };
  }
}

/** The folders of unpacked programs below the one that was chosen. */
export function unpackedIn(runtimeDir: string, uid = process.getuid?.() ?? 0): string[] {
  const root = join(runtimeDir, `runtime-${uid}`);
  return readdirSync(root)
    .filter((name) => /^[0-9a-f]{64}$/.test(name))
    .map((name) => join(root, name));
}
