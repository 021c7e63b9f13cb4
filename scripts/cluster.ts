import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { FEATURES } from "../roles/features.ts";
import { OBJECT_STORE_OPTIONS } from "../src/config/object-store.ts";
import { withRows } from "../src/config/options.ts";
import { pause, systemClock } from "../src/core/clock.ts";
import { messageOf } from "../src/core/errors.ts";
import { SECRETS_FILE, secretsSchema } from "../src/deploy/local/layout.ts";
import { CONFIG_FILE } from "../src/deploy/local/programs.ts";
import { optionRowsOf } from "../src/feature/collect.ts";

/**
 * A cluster on this machine, to be tried: a local deployment (docs/deployments.md) that ends with this program.
 *
 *     npm run cluster                 in a new temporary folder, which is deleted at the end
 *     npm run cluster -- FOLDER       in a folder that is taken up again the next time
 *
 * `ENGINE_…` variables of the shell become settings of every process, for example `ENGINE_INGEST_MODE=staged`. Ctrl-C ends
 * all of it. Where this program was killed, `ENGINE_HOME=FOLDER engine deploy destroy --name cluster` does.
 */
const NAME = "cluster";
/** A process that waits for a signal alone would end. */
const AWAKE_MS = 60_000;
const ENTRY = fileURLToPath(new URL("../bin/engine.js", import.meta.url));
const given = process.argv[2];
const home = given === undefined ? mkdtempSync(join(tmpdir(), "engine-cluster-")) : resolve(given);
const folder = join(home, "deployments", NAME);

/** Runs a command of `engine deploy` and resolves to what it prints, unless that is shown. Rejects when it fails. */
async function deploy(words: readonly string[], { isShown = false, isDetached = false } = {}): Promise<string> {
  const child = spawn(process.execPath, [ENTRY, "deploy", ...words, "--name", NAME], {
    env: { ...process.env, ENGINE_HOME: home },
    stdio: ["ignore", isShown ? "inherit" : "pipe", "inherit"],
    detached: isDetached,
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  if (code === 0) return text;
  throw new Error(`engine deploy ${words[0]} ended with ${code ?? signal}`);
}

/** Lines for the deployment's own file, which has those of the catalog and the store already. */
async function settingsOfShell(): Promise<string> {
  const written = new Set<string>(["catalogUrl", ...OBJECT_STORE_OPTIONS]);
  const options = Object.entries(withRows(await optionRowsOf(FEATURES)));
  const lines = options.flatMap(([name, { env = "", toml }]) => {
    const { [env]: text = "" } = process.env;
    return toml === undefined || text.trim() === "" || written.has(name) ? [] : [`${toml} = ${JSON.stringify(text)}\n`];
  });
  return lines.join("");
}

async function bringUp(): Promise<void> {
  // PostgreSQL does not run as root, and its user has to come through.
  if (given === undefined) chmodSync(home, 0o711);
  else mkdirSync(home, { recursive: true });
  await deploy(["init", "--target", "local", "--yes", "--force"]);
  appendFileSync(join(folder, CONFIG_FILE), await settingsOfShell());
  const { url } = JSON.parse(await deploy(["up", "--yes", "--json"])) as { url: string };
  await deploy(["status"], { isShown: true });
  const { adminToken } = secretsSchema.parse(JSON.parse(readFileSync(join(folder, SECRETS_FILE), "utf8")));
  console.log(`logs: ${join(folder, "local", "logs")}`);
  console.log(`admin token: ${adminToken}`);
  console.log(
    `try: curl -s ${url}/v1/ingest -H 'Authorization: Bearer ${adminToken}' -H 'X-Table: notes' ` +
      `-H 'Content-Type: application/x-ndjson' --data '{"body":"hello"}'`,
  );
}

async function main(): Promise<number> {
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stopped.abort());
  console.log(`starting in ${home}`);
  let failure: unknown;
  try {
    await bringUp();
    while (!stopped.signal.aborted) await pause(systemClock, AWAKE_MS, stopped.signal);
  } catch (error) {
    // A terminal's Ctrl-C ends the command that runs, too.
    if (!stopped.signal.aborted) failure = error;
  }
  console.log("stopping");
  const isThere = existsSync(join(folder, "deployment.json"));
  const isKept = given !== undefined || (isThere && failure !== undefined);
  if (isThere) {
    // Another Ctrl-C is not for the command that ends everything.
    await deploy(["destroy", "--yes", ...(isKept ? [] : ["--force"])], { isDetached: true });
  }
  if (!isKept) rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  if (failure === undefined) return 0;
  console.error(`error: ${messageOf(failure)}${isKept ? `; what there is stays in ${home}` : ""}`);
  return 1;
}

process.exitCode = await main();
