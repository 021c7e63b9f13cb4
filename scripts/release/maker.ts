import type { Release } from "../../src/install/release/manifest.ts";
import type { TarEntry } from "./tar.ts";
import type { Target } from "./targets.ts";

export type Artefact = Release["artefacts"][number];

/** An artefact that was written into the release's folder. */
export type MadeFile = Omit<Artefact, "size_bytes" | "sha256">;

/** What a release is made from; the same for all its artefacts. */
export type ReleaseContext = {
  /** The checkout, whose bundle in `dist/` is that of its sources. */
  repository: string;
  version: string;
  /** The time of the commit, which everything in the artefacts has: seconds since 1970. */
  timeSecs: number;
  /** Where artefacts go. It is put in place when all are made. */
  out: string;
  /** Keeps what was downloaded, for the next time. */
  cache: string;
  /** For folders of this run alone. */
  work: string;
  /** Name of the npm package, with the scope where one is set. */
  packageName: string;
  /** Names of the platforms to make archives and single files for. */
  targets: readonly string[];
  /** Tars of the root file systems that images are based on, in order of the architectures. */
  imageBases: ReadonlyMap<Target["arch"], string>;
  /** The files of the npm package, without its top folder. */
  npmFiles: () => Promise<readonly TarEntry[]>;
  /** The files of an archive, without its top folder: the program, the packages that it needs, and Node. */
  programFiles: (target: Target) => Promise<readonly TarEntry[]>;
  /** The same as a folder. */
  programFolder: (target: Target) => Promise<string>;
  /** The components of the program (CycloneDX, JSON). */
  sbom: () => Promise<string>;
};

/** Makes artefacts of one kind. */
export type Maker = {
  /** By which `--only` names it. */
  name: string;
  /** Rejects with a sentence that says what is missing. */
  make(context: ReleaseContext): Promise<readonly MadeFile[]>;
};
