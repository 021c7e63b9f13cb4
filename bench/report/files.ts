import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { systemCodeOf } from "../../src/core/errors.ts";
import { comparedIn, proofSchema, type Proof } from "../proof/proof-file.ts";
import { readResult, type Result } from "../suite/result.ts";
import { growthSchema, type Growth } from "./growth.ts";
import type { HeldOut } from "./report.ts";

/** What a report is made from, by the kinds of its files. */
export type ReportFiles = { results: Result[]; growth: Growth[]; heldOut: HeldOut[] };

const KIND = z.object({ kind: z.string() });

/** Reads result files, curves and proofs. Rejects with a sentence for one that is none of them. */
export async function readFiles(paths: readonly string[]): Promise<ReportFiles> {
  const files: ReportFiles = { results: [], growth: [], heldOut: [] };
  for (const path of paths) {
    const found: unknown = JSON.parse(await readFile(path, "utf8"));
    const kind = KIND.safeParse(found).data?.kind;
    if (kind === "proof") {
      files.heldOut.push(...comparedIn(proofIn(found, path)));
      continue;
    }
    if (kind === undefined) {
      files.results.push(await readResult(path));
      continue;
    }
    const growth = growthSchema.safeParse(found);
    if (!growth.success) {
      const [issue] = growth.error.issues;
      throw new Error(`${path} is no curve of growth: ${issue?.path.join(".")}: ${issue?.message}`);
    }
    files.growth.push(growth.data);
  }
  return files;
}

function proofIn(found: unknown, path: string): Proof {
  const proof = proofSchema.safeParse(found);
  if (proof.success) return proof.data;
  const [issue] = proof.error.issues;
  throw new Error(`${path} is no proof: ${issue?.path.join(".")}: ${issue?.message}`);
}

/** Paths of the files of a folder that hold JSON, by name; none where there is no folder. */
export async function jsonFilesIn(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => name.endsWith(".json"))
      .toSorted()
      .map((name) => join(folder, basename(name)));
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}
