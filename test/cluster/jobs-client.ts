import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";

/** A job as the control plane lists it. */
const listedJob = z.object({
  id: z.string(),
  kind: z.string(),
  status: z.string(),
  fence: z.int(),
  attempt: z.int(),
  error: z.string().nullable(),
});
export type ListedJob = z.infer<typeof listedJob>;

const PAGE = 500;
const AT_ONCE = 16;
const RETRY_MS = 100;
const GIVE_UP_MS = 60_000;

/** Whoever enqueues jobs over HTTP, and asks again while the control plane is away. */
export class JobsClient {
  readonly url: string;
  #keys = 0;

  constructor(url: string) {
    this.url = url;
  }

  /** Makes a worker, and gives its token. */
  async admit(name: string): Promise<string> {
    return z.object({ token: z.string() }).parse(await this.#ask("POST", "/v1/workers", { name })).token;
  }

  /** Enqueues so many jobs of each kind, mixed and spread over the time; resolves to the ids that were acknowledged. */
  async enqueueAll(counts: Readonly<Record<string, number>>, overMs: number): Promise<Set<string>> {
    const jobs = Object.entries(counts).flatMap(([kind, count]) =>
      Array.from({ length: count }, (_, n) => ({ kind, key: `${kind} ${++this.#keys}`, place: (n + 0.5) / count })),
    );
    const inOrder = jobs.toSorted((a, b) => a.place - b.place);
    const startedMs = performance.now();
    const ids = new Set<string>();
    let next = 0;
    const enqueueNext = async (): Promise<void> => {
      for (let job = inOrder[next++]; job !== undefined; job = inOrder[next++]) {
        const waitMs = startedMs + job.place * overMs - performance.now();
        if (waitMs > 1) await delay(waitMs);
        const body = { kind: job.kind, payload: job.key, dedup_key: job.key, max_attempts: 50, backoff_ms: 100 };
        ids.add(z.object({ job_id: z.string() }).parse(await this.#ask("POST", "/v1/jobs", body)).job_id);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, enqueueNext));
    return ids;
  }

  /** Jobs that wait or run: none, or at least so many. */
  async unfinished(): Promise<number> {
    let found = 0;
    // What is leased at one look may be queued again at the next.
    for (const status of ["queued", "leased", "queued", "leased"]) {
      found += (await this.#list(`status=${status}&limit=1`)).length;
    }
    return found;
  }

  async allJobs(): Promise<ListedJob[]> {
    const all: ListedJob[] = [];
    for (let before = ""; ; before = `&before=${all.at(-1)?.id}`) {
      const page = await this.#list(`limit=${PAGE}${before}`);
      all.push(...page);
      if (page.length < PAGE) return all;
    }
  }

  async #list(query: string): Promise<ListedJob[]> {
    return z.object({ jobs: z.array(listedJob) }).parse(await this.#ask("GET", `/v1/jobs?${query}`)).jobs;
  }

  /** Until it is answered with success. A refusal that is not about the moment is an error. */
  async #ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const giveUpAtMs = performance.now() + GIVE_UP_MS;
    for (;;) {
      try {
        const init = body === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
        const answer = await fetch(this.url + path, { method, ...init, signal: AbortSignal.timeout(20_000) });
        const text = await answer.text();
        if (answer.ok) return JSON.parse(text);
        if (answer.status < 500 && answer.status !== 429) throw new Refused(`${method} ${path}: ${text}`);
      } catch (error) {
        if (error instanceof Refused || performance.now() > giveUpAtMs) throw error;
      }
      if (performance.now() > giveUpAtMs) throw new Refused(`${method} ${path}: no success for ${GIVE_UP_MS} ms`);
      await delay(RETRY_MS);
    }
  }
}

const JSON_TYPE = { "Content-Type": "application/json" };

class Refused extends Error {}
