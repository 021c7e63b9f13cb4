import type { Service } from "../src/core/lifecycle.ts";
import type { FeatureDeps } from "../src/feature/feature.ts";
import { openEmbedding, openMemory, openRecall } from "../src/knowledge/memory/open.ts";
import type { MemoryDeps } from "../src/knowledge/memory/routes/deps.ts";

/** What answers the routes of memories in this process. */
export function memoryHere(deps: Omit<FeatureDeps, "fabric">): MemoryDeps {
  const embedding = openEmbedding(deps);
  return { memory: openMemory(deps, embedding), recall: openRecall(deps, embedding) };
}

/** Builds the indexes of recall from the start on, and embeds what has no vector; the server listens meanwhile. */
export function recallService({ recall }: Pick<MemoryDeps, "recall">): Service {
  return {
    name: "recall",
    run: async () => {
      void recall.prepare();
      void recall.followSaves();
    },
    // The HTTP server, which drains first, waits for the answers.
    drain: async () => {},
    stop: () => recall.close(),
  };
}
