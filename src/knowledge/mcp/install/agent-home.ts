import { homedir } from "node:os";
import { join } from "node:path";
import { CliError, EXIT } from "../../../client/failure.ts";

/** Where the terminal coding agent of this user keeps its files. */
export function agentHome(): string {
  const home = homedir();
  if (home !== "") return join(home, ".claude");
  throw new CliError("the user of this process has no home folder, where the agent keeps its files", EXIT.usage);
}
