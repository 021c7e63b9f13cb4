/** A platform that has artefacts of its own. */
export type Target = { os: "linux" | "darwin"; arch: "x64" | "arm64" };

export const TARGETS: readonly Target[] = [
  { os: "linux", arch: "x64" },
  { os: "linux", arch: "arm64" },
  { os: "darwin", arch: "x64" },
  { os: "darwin", arch: "arm64" },
];

export function nameOf({ os, arch }: Target): string {
  return `${os}-${arch}`;
}
