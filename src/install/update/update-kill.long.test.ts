import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { ARCHIVE_VERSIONS } from "../../core/distribution.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { signalGroup } from "../../core/signals.test-kit.ts";
import { delay } from "../../core/waiting.test-kit.ts";
import { UpdateWorld } from "./update.test-kit.ts";

const CHILD = fileURLToPath(new URL("./update-child.test-kit.ts", import.meta.url));
const KILLS = 8;
const VERSIONS = ["0.2.0", "0.3.0"] as const;

let world: UpdateWorld;
afterEach(() => world.remove());

/** Starts an update, and kills it so long after it has begun. Returns its exit code; null if it was killed in time. */
async function update(version: string, killAfterMs?: number): Promise<{ code: number | null; tookMs: number }> {
  const { distribution, key, home, url, folder } = world;
  const description = JSON.stringify({ distribution, publicKey: key.publicKey });
  const env = { PATH: process.env["PATH"], HOME: folder, ENGINE_HOME: home, ENGINE_UPDATE_URL: url };
  const words = ["--disable-warning=ExperimentalWarning", CHILD, description, version];
  const child = spawn(process.execPath, words, { env, stdio: ["ignore", "pipe", "inherit"], detached: true });
  const gone = once(child, "close") as Promise<[number | null]>;
  await once(child.stdout, "data");
  const beganMs = performance.now();
  child.stdout.resume();
  if (killAfterMs !== undefined) {
    await Promise.race([delay(killAfterMs), gone]);
    // With whatever it has started.
    if (child.exitCode === null) signalGroup(child.pid, "SIGKILL");
  }
  const [code] = await gone;
  return { code, tookMs: performance.now() - beganMs };
}

function started(): string {
  const text = execFileSync(world.program, ["version", "--json"], { encoding: "utf8" });
  return (JSON.parse(text) as { version: string }).version;
}

function versions(): string[] {
  const folder = join(world.folder, "opt", ARCHIVE_VERSIONS);
  return existsSync(folder) ? readdirSync(folder) : [];
}

test.each(["single-file", "archive"] as const)("a %s starts whenever its update is killed", async (kind) => {
  world = new UpdateWorld(kind);
  const random = drawnRandom();
  for (const version of VERSIONS) world.publish(version);
  const { code, tookMs } = await update(VERSIONS[0]);
  expect(code).toBe(0);
  let [killed, before] = [0, started()];
  for (let i = 0; i < KILLS; i++) {
    const version = VERSIONS[(i + 1) % 2] as string;
    const outcome = await update(version, random.next() * tookMs * 1.2);
    if (outcome.code === null) killed++;
    expect([null, 0]).toContain(outcome.code);
    const now = started();
    expect(outcome.code === 0 ? [version] : [before, version]).toContain(now);
    before = now;
  }
  expect(killed).toBeGreaterThan(0);
  // The next one works, and leaves nothing of those.
  expect((await update(VERSIONS[1])).code).toBe(0);
  expect(started()).toBe(VERSIONS[1]);
  expect(readdirSync(dirname(world.program)).toSorted()).toEqual(["engine", "engine.before"]);
  expect(versions().length).toBeLessThanOrEqual(2);
});
