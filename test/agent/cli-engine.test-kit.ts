import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEngine, type Engine } from "../support/engine.ts";
import { send } from "./agent.test-kit.ts";
import type { AgentScript, AgentStep } from "./scripted-agent.test-kit.ts";

export type Record_ = Record<string, unknown>;

/** A server whose engine is a scripted program. */
export type CliServer = {
  engine: Engine;
  url: string;
  /** What the program does from now on; the record begins anew. */
  play: (steps: AgentStep[], more?: Partial<AgentScript>) => Promise<void>;
  /** What the program noted under that name. */
  noted: (name: string) => Promise<unknown[]>;
  remove: () => Promise<void>;
};

const AGENT = fileURLToPath(new URL("scripted-agent.test-kit.ts", import.meta.url));
export const CLI_ENGINE = { kind: "cli", model: "default", credential_id: null, host: null, extras: {} };

export async function startCli(
  more: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<CliServer> {
  const home = await mkdtemp(join(tmpdir(), "cli-engine-test-"));
  const [script, record] = [join(home, "script.json"), join(home, "record.ndjson")];
  const play = async (steps: AgentStep[], rest: Partial<AgentScript> = {}): Promise<void> => {
    await writeFile(script, JSON.stringify({ steps, ...rest }));
    await writeFile(record, "");
  };
  await play([]);
  const command = [process.execPath, "--no-warnings", AGENT, script, record].map((word) => `"${word}"`).join(" ");
  // The folders of programs are there, and can be counted.
  const env = { ENGINE_AGENT_COMMAND: command, ENGINE_CA_HOME: home, TMPDIR: home, ...more };
  const engine = await startEngine({ home: join(home, "engine"), env });
  const saved = await send(engine.url, "PUT", "/v1/agent/engine", CLI_ENGINE, headers);
  if (saved.status !== 200) throw new Error(`the engine was not set: ${await saved.text()}`);
  return {
    engine,
    url: engine.url,
    play,
    async noted(name) {
      const lines = (await readFile(record, "utf8")).split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line) as Record_).flatMap((note) => (name in note ? [note[name]] : []));
    },
    remove: async () => {
      await engine.stop("SIGTERM");
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Whether a process of that id runs; one that waits for its parent to look does not. */
export async function isAlive(pid: unknown): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${String(pid)}/stat`, "utf8");
    return !/\) Z /.test(stat);
  } catch {
    return false;
  }
}
