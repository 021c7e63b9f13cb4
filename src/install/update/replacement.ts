import type { Release, Artefact } from "../release/manifest.ts";

/** How a program of one kind is replaced by a newer one. At every moment what the user starts is whole. */
export interface Replacement {
  /** Which of the release's artefacts it takes. */
  readonly kind: Artefact["kind"];
  /** The folder that must have room and be writable. */
  readonly folder: string;
  /** Takes away what an update that was killed has left. */
  tidy(): Promise<void>;
  /** Puts the new program beside the one that is there, and returns the file that starts it. */
  stage(release: Release, artefact: Artefact): Promise<string>;
  /** Takes the staged program away again. */
  discard(): Promise<void>;
  /** From here on the new program starts; the one before is kept. */
  commit(): Promise<void>;
  /** Puts back the one before. */
  revert(): Promise<void>;
  /** Takes away what neither starts nor is kept. */
  prune(): Promise<void>;
}

/** What the one before is kept as, beside the one that starts. */
export const BEFORE = ".before";
