import type { Release } from "./manifest.ts";

/** The fields of a release of version 0.2.0, for tests to change. */
export function exampleRelease(): Omit<Release, "format" | "product"> {
  return {
    version: "0.2.0",
    released_at: "2026-11-01T00:00:00Z",
    expires_at: "2027-11-01T00:00:00Z",
    catalog: { sqlite: { reads_from: 1, writes: 40 }, postgres: { reads_from: 1, writes: 50 } },
    artefacts: [
      {
        name: "engine-0.2.0-linux-x64",
        kind: "single-file",
        os: "linux",
        arch: "x64",
        size_bytes: 1000,
        sha256: "0".repeat(64),
      },
    ],
  };
}
