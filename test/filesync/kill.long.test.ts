import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { startEngine, cleanEnv } from "../support/engine.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const FILES = 40;
const KILLS = 15;

const root = mkdtempSync(join(tmpdir(), "engine-sync-kill-"));
afterAll(() => rmSync(root, { recursive: true }));
const folder = join(root, "agent", "projects", "-work-web", "memory");
const home = join(root, "home");
const env = { ENGINE_HOME: home, ENGINE_CA_HOME: join(root, "agent"), ENGINE_AUTH_BACKEND: "env" };

/** A sync that is killed after so long; undefined: it ends by itself. */
async function sync(killAfterMs?: number): Promise<boolean> {
  const child = endsWithThisProcess(
    spawn(process.execPath, [PROGRAM, "sync"], {
      env: { ...cleanEnv(), ...env, ENGINE_CA_QUIET_WINDOW: "0" },
      stdio: "ignore",
    }),
  );
  const ended = once(child, "exit");
  if (killAfterMs !== undefined) {
    await delay(killAfterMs);
    child.kill("SIGKILL");
  }
  const [code, signal] = (await ended) as [number | null, string | null];
  if (signal === null && code !== 0) throw new Error(`the sync ended with ${code}`);
  return signal === "SIGKILL";
}

const fact = (name: string, body: string) => `---\nname: ${name}\nmetadata:\n  type: project\n---\n\n${body}\n`;

type Node = { id: string; content: string; invalidated_at: string | null; topic_key: string | null };

test("whenever a sync is killed, the next one ends with both sides alike, and nothing is lost or doubled", async () => {
  mkdirSync(folder, { recursive: true });
  const engine = await startEngine({ home, env: { ...env, ENGINE_CA_WATCH: "0" } });
  const post = async (path: string, body: unknown) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${engine.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(answer.status).toBe(200);
  };
  const nodes = async (): Promise<Node[]> => {
    const answer = (await (await fetch(`${engine.url}/v1/agent/memory/export`)).json()) as { memory_nodes: Node[] };
    return answer.memory_nodes.filter((node) => node.invalidated_at === null);
  };
  try {
    // How long a sync takes here, so that kills fall into it.
    const startedMs = performance.now();
    await sync();
    let wholeMs = performance.now() - startedMs;
    const said = new Set<string>();
    let killed = 0;
    for (let round = 0; round < KILLS; round++) {
      for (let i = 0; i < FILES; i++) {
        if (i % KILLS !== round && round > 0 && i % 3 !== 0) continue;
        const body = `Fact ${i} in round ${round}`;
        writeFileSync(join(folder, `fact-${i}.md`), fact(`fact-${i}`, body));
        said.add(body);
      }
      // Somebody else remembers at the same time: something new, and something else about a file.
      const others = [`Important ${round}`, `Another word on fact 1 of round ${round}`];
      for (const content of others) said.add(content);
      await post("/v1/agent/memory/import", {
        memory_nodes: [
          { content: others[0], realm: "project:-work-web", importance: 1 },
          { content: others[1], realm: "project:-work-web", topic_key: "file:fact-1.md" },
        ],
      });
      const beganMs = performance.now();
      if (await sync(wholeMs * (0.35 + (0.75 * round) / KILLS))) killed++;
      // It ended first: on a machine that has become less busy the next ones take as long.
      else wholeMs = performance.now() - beganMs;
    }
    expect(killed).toBeGreaterThan(KILLS / 3);
    await sync();
    await sync();
    const held = await nodes();
    const contents = held.map(({ content }) => content);
    // Each memory is there once, and each file says what its memory says.
    expect(contents.length).toBe(new Set(contents).size);
    const files = readdirSync(folder).filter((name) => name !== "MEMORY.md");
    expect(files.filter((name) => !name.endsWith(".md"))).toEqual([]);
    for (const name of files) {
      const body = readFileSync(join(folder, name), "utf8").split("---\n\n")[1]?.trim();
      expect(contents).toContain(body);
    }
    // What was said last of a fact is held. Of fact 1 that is what the memory said, in rounds in which its file did not.
    const last = (i: number) => contents.some((content) => content.startsWith(`Fact ${i} in round`));
    for (let i = 0; i < FILES; i++) expect(last(i) || i === 1).toBe(true);
    expect(contents).toContain(`Another word on fact 1 of round ${KILLS - 1}`);
    for (let round = 0; round < KILLS; round++) expect(contents).toContain(`Important ${round}`);
    for (const content of contents) expect(said).toContain(content);
  } finally {
    await engine.stop();
  }
});
