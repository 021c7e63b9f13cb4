import { readFileSync, readdirSync } from "node:fs";

/** Files below a folder that loop devices hold. */
export function loopFiles(folder: string): string[] {
  return readdirSync("/sys/block")
    .filter((name) => name.startsWith("loop"))
    .map((name) => backingFile(name))
    .filter((file) => file.startsWith(`${folder}/`));
}

function backingFile(name: string): string {
  try {
    return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trim();
  } catch {
    // It has none, or lost it at this moment.
    return "";
  }
}
