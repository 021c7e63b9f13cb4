import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import { tryLock } from "../../db/sqlite/process-lock.ts";
import type { MemoryScope, MemoryService } from "../memory/service.ts";
import { exchange, type Cloud } from "./cloud.ts";
import { memoryFolder, memoryFolders, type MemoryFolder } from "./folder.ts";
import { ProjectMemory } from "./project-memory.ts";
import { syncProject, type Done } from "./project-sync.ts";
import type { Curation } from "./curation.ts";
import type { Promotion } from "./promotion.ts";
import { FILE_SYNC_LIMITS } from "./limits.ts";
import { review, StateFiles, type Review } from "./state.ts";

export type FileSyncOptions = {
  /** ENGINE_HOME, where the state is. */
  home: string;
  /** What is synced with what: of other things nothing is known. */
  of: string;
  /** The home of the coding agent. */
  agentHome: string;
  promotion: Promotion;
  curation: Curation;
  lockTtlMs: number;
  cloud: Cloud | undefined;
  userAgent: string;
};

export type FileSyncDeps = {
  memory: MemoryService;
  scope: () => Promise<MemoryScope>;
  clock: Clock;
  random: Random;
  options: FileSyncOptions;
};

export type PassRequest = {
  withFiles: boolean;
  withCloud: boolean;
  /** Only this project, by the name of its folder as the agent has it. */
  project?: string | undefined;
  isDry: boolean;
  signal: AbortSignal;
};

const action = z.enum(["saved", "invalidated", "written", "removed", "promoted", "conflict", "skipped"]);

/** What a pass came to, as commands print it and as it is kept. */
export const passResult = z.object({
  finished_at: z.string(),
  projects: z.array(
    z.object({
      project: z.string(),
      realm: z.string(),
      done: z.array(z.object({ file: z.string(), action, reason: z.string().optional() })),
      /** What is for people to look at: the first findings of each kind, and how many there are. */
      review: review
        .extend({ stale_count: z.int(), duplicate_count: z.int() })
        .default({ stale: [], duplicates: [], stale_count: 0, duplicate_count: 0 }),
      error: z.string().optional(),
    }),
  ),
  cloud: z.object({ pulled: z.int(), pushed: z.int(), error: z.string().optional() }).optional(),
});
export type PassResult = z.output<typeof passResult>;

/** Under which name the result of the last pass is kept. */
export const LAST = "last";

/** Keeps the memories of projects and the files of coding agents in step, and exchanges memories with a server. */
export class FileSync {
  readonly #deps: FileSyncDeps;
  readonly #state: StateFiles;

  constructor(deps: FileSyncDeps) {
    const { home, of } = deps.options;
    this.#deps = deps;
    this.#state = new StateFiles({ home, of, random: deps.random });
  }

  /** One pass. Undefined while another process is at it; what fails is in the result, and the rest goes on. */
  async pass(request: PassRequest): Promise<PassResult | undefined> {
    const { clock, options } = this.#deps;
    const lock = tryLock(this.#state.lockFile);
    if (lock === undefined) return undefined;
    const overdue = new AbortController();
    const timer = clock.after(options.lockTtlMs, () => overdue.abort(new Error("the pass took too long")), {
      background: true,
    });
    try {
      const signal = AbortSignal.any([request.signal, overdue.signal]);
      const result = await this.#passed({ ...request, signal });
      if (!request.isDry) await this.#state.write(LAST, result);
      return result;
    } finally {
      timer.cancel();
      lock.release();
    }
  }

  async #passed({ withFiles, withCloud, project, isDry, signal }: PassRequest): Promise<PassResult> {
    const { clock, memory, options } = this.#deps;
    const scope = await this.#deps.scope();
    const projects: PassResult["projects"] = [];
    const files = async (): Promise<void> => {
      for (const folder of withFiles ? await this.#folders(project) : []) {
        if (signal.aborted) return;
        projects.push(await this.#project(memory, scope, folder, isDry));
      }
    };
    const server = withCloud ? options.cloud : undefined;
    const cloud =
      server !== undefined ? await this.#exchanged(scope, server, { isDry, signal, between: files }) : undefined;
    if (server === undefined) await files();
    const finished = new Date(clock.nowMs()).toISOString();
    return { finished_at: finished, projects, ...(cloud !== undefined && { cloud }) };
  }

  async #folders(project: string | undefined): Promise<MemoryFolder[]> {
    const { agentHome } = this.#deps.options;
    if (project === undefined) return await memoryFolders(agentHome);
    const folder = await memoryFolder(agentHome, project);
    return folder === undefined ? [] : [folder];
  }

  async #project(memory: MemoryService, scope: MemoryScope, folder: MemoryFolder, isDry: boolean) {
    const { clock, random, options } = this.#deps;
    const of = new ProjectMemory(memory, scope, folder.project);
    const about = { project: folder.project, realm: of.realm };
    try {
      const before = await this.#state.project(folder.project);
      const { promotion, curation } = options;
      const deps = { memory: of, folder, clock, random, promotion, curation, isDry };
      const { done, state } = await syncProject(deps, before);
      if (!isDry) await this.#state.saveProject(folder.project, state);
      return { ...about, done: done satisfies Done[], review: toldOf(state.curation.review) };
    } catch (error) {
      return { ...about, done: [], review: toldOf({ stale: [], duplicates: [] }), error: messageOf(error) };
    }
  }

  /** Files are synced also where the server cannot be reached. */
  async #exchanged(
    scope: MemoryScope,
    cloud: Cloud,
    how: { isDry: boolean; signal: AbortSignal; between: () => Promise<void> },
  ) {
    const { memory, options } = this.#deps;
    let areFilesDone = false;
    const between = async (): Promise<void> => {
      areFilesDone = true;
      await how.between();
    };
    try {
      return await exchange(
        { memory, scope, state: this.#state, cloud, userAgent: options.userAgent },
        { ...how, between },
      );
    } catch (error) {
      if (!areFilesDone) await how.between();
      return { pulled: 0, pushed: 0, error: messageOf(error) };
    }
  }
}

function toldOf({ stale, duplicates }: Review) {
  return {
    stale: stale.slice(0, FILE_SYNC_LIMITS.toldFindings),
    duplicates: duplicates.slice(0, FILE_SYNC_LIMITS.toldFindings),
    stale_count: stale.length,
    duplicate_count: duplicates.length,
  };
}

/** Whether all of it went well. */
export function isWell({ projects, cloud }: PassResult): boolean {
  return cloud?.error === undefined && projects.every(({ error }) => error === undefined);
}
