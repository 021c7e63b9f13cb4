import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { cleanEnv } from "../support/engine.ts";
import { send } from "./agent.test-kit.ts";

/** Workers that run dreams, as processes and as tokens. */

const BIN = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

export type WorkerProcess = { log: () => string; kill: (signal: NodeJS.Signals) => Promise<void> };

/** Runs `engine worker run --accept dreaming`; resolves when it takes jobs. */
export async function startDreamWorker(
  { url, home, token }: { url: string; home: string; token: string },
  env: Record<string, string> = {},
): Promise<WorkerProcess> {
  const args = [BIN, "worker", "run", "--server", url, "--accept", "dreaming"];
  const child = endsWithThisProcess(
    spawn(process.execPath, args, {
      env: {
        ...cleanEnv(),
        ANTHROPIC_API_KEY: "",
        OPENAI_API_KEY: "",
        ENGINE_HOME: home,
        ENGINE_WORKER_INSECURE: "1",
        ENGINE_WORKER_TOKEN: token,
        ...env,
      },
      stdio: ["ignore", "ignore", "pipe"],
    }),
  );
  let log = "";
  const ready = Promise.withResolvers<void>();
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
    if (log.includes("registered; taking jobs")) ready.resolve();
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  void gone.then(() => ready.reject(new Error(`the worker ended: ${log}`)));
  await ready.promise;
  return { log: () => log, kill: (signal) => (child.kill(signal), gone) };
}

export type NewWorker = { id: string; token: string };

export async function newWorker(url: string, headers: Record<string, string>, more: object = {}): Promise<NewWorker> {
  const response = await send(url, "POST", "/v1/workers", { name: `node-${Date.now()}`, ...more }, headers);
  if (response.status >= 300) throw new Error(`no worker was made: ${await response.text()}`);
  const { worker_id: id, token } = (await response.json()) as { worker_id: string; token: string };
  return { id, token };
}

export type HeldDream = { id: string; fence: number; token: string };

/** Claims a dream as a worker of another program would; it must come within the wait. */
export async function claimDream(url: string, token: string): Promise<HeldDream> {
  const body = { kinds: ["dreaming"], wait_ms: 20_000 };
  const response = await send(url, "POST", "/v1/jobs/claim", body, { Authorization: `Bearer ${token}` });
  const { jobs } = (await response.json()) as { jobs: { id: string; fence: number }[] };
  const [job] = jobs;
  if (job === undefined) throw new Error("there is no dream to claim");
  return { id: job.id, fence: job.fence, token };
}

export type Answered = { status: number; json: Record<string, unknown> };

/** Posts to a route of a job as its holder; `fence` null sends none. */
export async function ofJob(
  url: string,
  { id, fence, token }: { id: string; fence: number | null; token: string },
  path: string,
  body?: unknown,
): Promise<Answered> {
  const fenced = fence === null ? {} : { "X-Job-Fence": String(fence) };
  const headers = { Authorization: `Bearer ${token}`, ...fenced };
  const response = await send(url, "POST", `/v1/jobs/${id}/${path}`, body, headers);
  const text = await response.text();
  return { status: response.status, json: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
}
