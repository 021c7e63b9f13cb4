import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { CliContext } from "../../../client/context.ts";
import { OWN_ENTRY } from "./agents.ts";

/** Whether agents will find the program by its name. */
export function isOnPath({ deps: { env } }: CliContext): boolean {
  return (env["PATH"] ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, OWN_ENTRY.command), constants.X_OK);
      return folder !== "";
    } catch {
      // Not in this one.
      return false;
    }
  });
}
