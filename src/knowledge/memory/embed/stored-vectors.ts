import type { OptionValues } from "../../../config/option.ts";
import type { RecordStore } from "../../../db/records.ts";
import type { NodeRecord } from "../model.ts";
import { MemoryStore } from "../store.ts";
import type { EMBED_OPTIONS } from "./options.ts";
import { configuredModel } from "./setup.ts";
import { VectorStore } from "./vector-store.ts";
import { vectorKeyOf } from "./vector-text.ts";

/** The vectors of the configured model, for a process that reads them and computes none. */
export class StoredVectors {
  readonly model: string;
  readonly #vectors: VectorStore;
  readonly #store: MemoryStore;

  constructor(records: RecordStore, model: string) {
    this.model = model;
    // It holds no database, so it needs no name.
    this.#vectors = new VectorStore(records, "");
    this.#store = new MemoryStore(records);
  }

  /** How many commits of a database have their vectors, and whether that is all of them. */
  async progress(databaseId: number): Promise<{ throughSeq: number; isComplete: boolean }> {
    const [head, throughSeq] = await Promise.all([
      this.#store.head(databaseId),
      this.#vectors.throughSeq({ databaseId, model: this.model }),
    ]);
    return { throughSeq, isComplete: throughSeq >= head.seq };
  }

  /** The vectors of those nodes that have one, of length 1, by the node's id. */
  async of(databaseId: number, nodes: readonly NodeRecord[]): Promise<Map<string, Float32Array>> {
    const idByKey = new Map(nodes.map((node) => [vectorKeyOf(node), node.id]));
    const found = await this.#vectors.vectors({ databaseId, model: this.model }, [...idByKey.keys()]);
    return new Map([...found].map(([key, vector]) => [idByKey.get(key) ?? "", vector]));
  }
}

/** Undefined where no model is configured. */
export function openStoredVectors(
  options: OptionValues<typeof EMBED_OPTIONS>,
  records: RecordStore,
): StoredVectors | undefined {
  const model = configuredModel(options);
  return model === undefined ? undefined : new StoredVectors(records, model);
}
