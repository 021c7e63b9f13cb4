import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Random } from "../../core/random.ts";
import { keepAs, moveDurably, removeTemporaries, temporaryBeside } from "../../core/durable-file.ts";
import type { Artefact, Release } from "../release/manifest.ts";
import { download } from "./download.ts";
import { BEFORE, type Replacement } from "./replacement.ts";
import type { ReleaseSource } from "./source.ts";

/** A program that is one file: the new one takes its name by one rename. */
export class FileReplacement implements Replacement {
  readonly kind = "single-file";
  readonly folder: string;
  readonly #program: string;
  readonly #source: ReleaseSource;
  readonly #random: Random;
  readonly #staged: string;

  constructor(program: string, { source, random }: { source: ReleaseSource; random: Random }) {
    this.folder = dirname(program);
    this.#program = program;
    this.#source = source;
    this.#random = random;
    this.#staged = temporaryBeside(program, random);
  }

  async tidy(): Promise<void> {
    for (const file of [this.#program, `${this.#program}${BEFORE}`]) await removeTemporaries(file);
  }

  async stage({ version }: Release, artefact: Artefact): Promise<string> {
    const { mode } = await stat(this.#program);
    await download(this.#source, { version, artefact }, this.#staged, (mode & 0o777) | 0o500);
    return this.#staged;
  }

  async discard(): Promise<void> {
    await rm(this.#staged, { force: true });
  }

  async commit(): Promise<void> {
    await keepAs(this.#program, `${this.#program}${BEFORE}`, this.#random);
    try {
      await moveDurably(this.#staged, this.#program);
    } catch (error) {
      // It may have its new name already.
      await this.revert();
      throw error;
    }
  }

  async revert(): Promise<void> {
    await keepAs(`${this.#program}${BEFORE}`, this.#program, this.#random);
  }

  prune(): Promise<void> {
    return Promise.resolve();
  }
}
