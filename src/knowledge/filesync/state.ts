import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readIfThere, writeDurably } from "../../core/durable-file.ts";
import type { Random } from "../../core/random.ts";
import { hashOf } from "./folder.ts";

/**
 * What was last synced, in files of this machine below `<home>/filesync/`: what is on both sides is compared with it. It
 * is written last; a pass that was killed before is repeated, and finds both sides alike. Without it both sides are
 * compared with each other.
 */
const syncedFile = z.object({
  nodeId: z.string(),
  /** Of the file's bytes, its length and time when it was last read or written. */
  file: z.string(),
  size: z.number(),
  mtimeMs: z.number(),
  /** Of what the memory says: see `nodeHash`. */
  node: z.string(),
  /** The file was written for a memory that had none. */
  promoted: z.boolean(),
  name: z.string(),
  hook: z.string(),
  importance: z.number(),
  links: z.array(z.string()),
});

const reviewed = z.object({
  id: z.string(),
  name: z.string(),
  /** Its file, where it has one. */
  file: z.string().optional(),
});

/** What curation found: see `curation.ts`. */
export const review = z.object({
  stale: z.array(reviewed.extend({ changed_at: z.string() })),
  duplicates: z.array(
    reviewed.extend({
      /** The memory that it says the same as, or may say the same as. */
      of: reviewed,
      /** Of their vectors; null where they were not compared, for their texts are the same. */
      cosine: z.number().nullable(),
      /** `linked`: there is an edge `duplicate_of`. `possible`: nobody has decided. */
      is: z.enum(["linked", "possible"]),
    }),
  ),
});
export type Review = z.output<typeof review>;

const curationState = z.object({
  /** What the findings were made for; empty where something has changed since. */
  key: z.string(),
  /** Whether all memories had their vectors; if not, how far they were. */
  sawAllVectors: z.boolean(),
  throughSeq: z.number(),
  /** Of what a language model had said of pairs; absent in what earlier versions wrote. */
  verdicts: z.string().default(""),
  review,
  /** Edges `duplicate_of`: ids of nodes, and the keys of what they said. */
  linked: z.array(z.object({ src: z.string(), dst: z.string(), srcKey: z.string(), dstKey: z.string() })),
});
export type CurationState = z.output<typeof curationState>;

export function nothingCurated(): CurationState {
  const nothing = { review: { stale: [], duplicates: [] }, linked: [] };
  return { key: "", sawAllVectors: false, throughSeq: 0, verdicts: "", ...nothing };
}

const projectState = z.object({
  format: z.literal(1),
  /** The stamp up to which changes of the memory are in. */
  untilUs: z.number(),
  /** The stamp of its newest change after the pass. */
  headUs: z.number(),
  /** When files were last read: one that changed in the same moment is read again. */
  readAtMs: z.number(),
  /** When somebody else last changed something here. */
  activeAtMs: z.number(),
  /** The stamp and settings that memories were last promoted for. */
  promoted: z.string(),
  files: z.record(z.string(), syncedFile),
  /** Links that are edges: ids of nodes. */
  edges: z.array(z.tuple([z.string(), z.string()])),
  /** Absent in what earlier versions wrote. */
  curation: curationState.default(nothingCurated),
});

export type SyncedFile = z.output<typeof syncedFile>;
export type ProjectState = z.output<typeof projectState>;

export function emptyState(): ProjectState {
  const times = { untilUs: 0, headUs: 0, readAtMs: 0, activeAtMs: 0 };
  return { format: 1, ...times, promoted: "", files: {}, edges: [], curation: nothingCurated() };
}

/** Of one agent's home, database and kind of thing. */
export class StateFiles {
  readonly #folder: string;
  readonly #random: Random;

  constructor({ home, of, random }: { home: string; of: string; random: Random }) {
    this.#folder = join(home, "filesync", hashOf(of).slice(0, 16));
    this.#random = random;
  }

  async project(name: string): Promise<ProjectState> {
    return (await this.#read(this.#projectFile(name), projectState)) ?? emptyState();
  }

  async saveProject(name: string, state: ProjectState): Promise<void> {
    await this.#write(this.#projectFile(name), state);
  }

  async read<S extends z.ZodType>(name: string, schema: S): Promise<z.output<S> | undefined> {
    return await this.#read(`${name}.json`, schema);
  }

  async write(name: string, value: unknown): Promise<void> {
    await this.#write(`${name}.json`, value);
  }

  /** The file whose lock is that of a pass. */
  get lockFile(): string {
    return join(this.#folder, "lock");
  }

  #projectFile(name: string): string {
    return `project-${hashOf(name)}.json`;
  }

  async #read<S extends z.ZodType>(file: string, schema: S): Promise<z.output<S> | undefined> {
    const text = await readIfThere(join(this.#folder, file));
    if (text === undefined) return undefined;
    try {
      return schema.safeParse(JSON.parse(text)).data;
    } catch {
      // Damaged: as if there were none, both sides are compared with each other.
      return undefined;
    }
  }

  async #write(file: string, value: unknown): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeDurably(join(this.#folder, file), JSON.stringify(value), 0o600, this.#random);
  }
}
