import { systemClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { systemRandom } from "../../../core/random.ts";
import { noCredentials } from "../credentials/directory.test-kit.ts";
import { Workspaces, type WorkspacesOptions } from "./workspaces.ts";

/** Workspaces over the records of a test, whose sandboxes it makes. */
export function workspacesOn(
  { records, audit, sandboxes }: Pick<WorkspacesOptions, "records" | "audit" | "sandboxes">,
  more: Partial<WorkspacesOptions> = {},
): Workspaces {
  return new Workspaces({
    records,
    audit,
    sandboxes,
    newId: uuidV7Source(systemClock, systemRandom),
    envSealing: undefined,
    repositories: { hosts: ["git.example"], plainHttp: false },
    maxPerTenant: 100,
    credentials: noCredentials,
    ...more,
  });
}
