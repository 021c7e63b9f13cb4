import { valuesOf } from "../src/config/option.ts";
import { pause } from "../src/core/clock.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { VERSION } from "../src/core/version.ts";
import { isWell, type FileSync, type PassResult } from "../src/knowledge/filesync/file-sync.ts";
import { openFileSync } from "../src/knowledge/filesync/open.ts";
import { FILE_SYNC_OPTIONS } from "../src/knowledge/filesync/options.ts";
import type { MemoryService } from "../src/knowledge/memory/service.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

type FileSyncParts = Parts & Pick<Storage, "records">;

/** Syncs files of coding agents beside `engine mcp`, when it opens the engine; nothing waits for it. */
export function fileSyncAtStart(parts: FileSyncParts, memory: MemoryService): Service[] {
  const { caFileSync, caSyncOnMcp } = valuesOf(FILE_SYNC_OPTIONS, parts.config);
  if (!caFileSync || !caSyncOnMcp) return [];
  return [background(parts, memory, (files, signal) => onePass(parts, files, { withCloud: false, signal }))];
}

/** Syncs them again and again beside `engine serve`, where that is asked for. */
export function fileSyncWatch(parts: FileSyncParts, memory: MemoryService): Service[] {
  const { caWatch, caFileSync, caSyncPollSecs } = valuesOf(FILE_SYNC_OPTIONS, parts.config);
  if (!parts.isLocal || !caWatch) return [];
  const watch = async (files: FileSync, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await onePass(parts, files, { withFiles: caFileSync, withCloud: true, signal });
      await pause(parts.clock, caSyncPollSecs * 1_000, signal);
    }
  };
  return [background(parts, memory, watch)];
}

type Pass = { withFiles?: boolean; withCloud: boolean; signal: AbortSignal };

async function onePass({ log }: Parts, files: FileSync, { withFiles = true, withCloud, signal }: Pass): Promise<void> {
  try {
    const result = await files.pass({ withFiles, withCloud, isDry: false, signal });
    if (result === undefined) log.debug("another process syncs the files of coding agents");
    else report(result);
  } catch (error) {
    log.warn({ err: error }, "the files of coding agents could not be synced");
  }

  function report(result: PassResult): void {
    const changes = result.projects.reduce((sum, { done }) => sum + done.length, 0);
    const facts = { projects: result.projects.length, changes, cloud: result.cloud };
    if (isWell(result)) log.info(facts, "files of coding agents synced");
    else
      log.warn(
        { ...facts, errors: result.projects.flatMap(({ error }) => error ?? []) },
        "files of coding agents not all synced",
      );
  }
}

function background(
  { config, records, clock, random }: FileSyncParts,
  memory: MemoryService,
  task: (files: FileSync, signal: AbortSignal) => Promise<void>,
): Service {
  const stop = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    name: "filesync",
    run: async () => {
      running = task(openFileSync(config, { memory, records, clock, random, version: VERSION }), stop.signal);
    },
    drain: async () => {
      stop.abort();
      await running;
    },
    stop: async () => {},
  };
}
