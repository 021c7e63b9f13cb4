import { z } from "zod";
import { VERSION_TEXT } from "./version-order.ts";

/**
 * `release.json`: what a release consists of. It is signed (`minisign.ts`), and names every artefact by size and hash,
 * so that nothing else of a release needs a signature. `npm run release` writes it, `engine update` reads it.
 */

/** Of an artefact; a program that is larger is none of ours. */
const MAX_ARTEFACT_BYTES = 2 ** 30;
/** Of `release.json` itself, and of its signature. */
export const MAX_MANIFEST_BYTES = 1_048_576;
const MAX_ARTEFACTS = 100;

/** One name in one folder, with which neither a path nor another address can be written. */
const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const VERSION_CHARS = 64;

const schemaNumber = z.int().min(0).max(1_000_000);
/** Schemas of a catalog by the number of migrations: which ones the program opens, and which one it writes. */
const schemaRange = z
  .strictObject({ reads_from: schemaNumber, writes: schemaNumber })
  .refine(({ reads_from, writes }) => reads_from <= writes, "reads_from is above writes");

const artefact = z.strictObject({
  name: z.string().regex(FILE_NAME),
  kind: z.enum(["npm", "single-file", "archive", "image", "sbom"]),
  os: z.enum(["linux", "darwin"]).optional(),
  arch: z.enum(["x64", "arm64"]).optional(),
  size_bytes: z.int().min(1).max(MAX_ARTEFACT_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const version = z.string().max(VERSION_CHARS).regex(VERSION_TEXT);
const moment = z.iso.datetime();

const release = z
  .strictObject({
    format: z.literal(1),
    /** One key may sign releases of several programs. */
    product: z.literal("engine"),
    version,
    released_at: moment,
    /** From then on nothing installs it: who holds back newer releases cannot do so for ever. */
    expires_at: moment,
    catalog: z.strictObject({ sqlite: schemaRange, postgres: schemaRange }),
    artefacts: z.array(artefact).min(1).max(MAX_ARTEFACTS),
  })
  .refine(({ artefacts }) => new Set(artefacts.map(({ name }) => name)).size === artefacts.length, "a name comes twice")
  .refine(({ released_at, expires_at }) => Date.parse(released_at) < Date.parse(expires_at), "it expires too early");

export type Release = z.infer<typeof release>;
export type Artefact = Release["artefacts"][number];

/** `release.json` is not what this version of the program reads. */
export class ManifestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ManifestError";
  }
}

/** The text of `release.json`: the same bytes for the same release. @throws ManifestError */
export function manifestText(fields: Omit<Release, "format" | "product">): string {
  return `${JSON.stringify(checked({ format: 1, product: "engine", ...fields }), undefined, 2)}\n`;
}

/** Reads `release.json`, whose signature is checked before. @throws ManifestError */
export function readManifest(bytes: Uint8Array): Release {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new ManifestError("it is not JSON");
  }
  const { format, product } = (value ?? {}) as { format?: unknown; product?: unknown };
  if (typeof product === "string" && product !== "engine") throw new ManifestError("it is of another product");
  if (typeof format === "number" && format > 1) throw new ManifestError("it has a format of later versions");
  return checked(value);
}

function checked(value: unknown): Release {
  const { success, data, error } = release.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  throw new ManifestError(`${issue?.path.join(".") || "it"}: ${issue?.message ?? "not as expected"}`);
}
