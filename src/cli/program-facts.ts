import { distribution } from "../core/distribution.ts";
import { messageOf } from "../core/errors.ts";
import { loadDuckDb } from "../io/duckdb/duckdb.ts";
import { loadUws } from "../io/http/uws-library.ts";

/** What this program is made of, for `engine version --json`. A part that does not load here says why instead. */
export type ProgramFacts = {
  distribution: string;
  platform: string;
  node: string;
  duckdb: string;
  /** What ENGINE_HTTP_DRIVER may name on this machine. */
  http_drivers: readonly string[];
};

const HEADER_BYTES = 16_384;

export async function programFacts(): Promise<ProgramFacts> {
  return {
    distribution: distribution().kind,
    platform: `${process.platform}-${process.arch}`,
    node: process.versions.node,
    duckdb: await duckDbVersion(),
    http_drivers: hasUws() ? ["node", "uws"] : ["node"],
  };
}

async function duckDbVersion(): Promise<string> {
  try {
    return (await loadDuckDb()).library_version();
  } catch (error) {
    return `does not load: ${messageOf(error).split("\n")[0]}`;
  }
}

/** There are binaries for Linux x64 only. */
function hasUws(): boolean {
  try {
    loadUws(HEADER_BYTES);
    return true;
  } catch {
    return false;
  }
}
