import { mayReachWithin, ownerOf } from "../../../auth/owner.ts";
import type { RecordStore } from "../../../catalog/records.ts";
import { SANDBOX_COLUMNS, toSandbox } from "./sandbox.ts";
import { hostsInMetadata, isOwnersOrNobodys } from "../credentials/bind.ts";
import { boundHosts } from "../../contract/credential-uses.ts";
import type { KnownCredential } from "../credentials/directory.ts";

/**
 * Whether the sandbox of a job may have a credential at this moment: its owner may use it, and each host that it is bound
 * to is one that the owner of the credential lets it go to. What was so when the sandbox was made may be over: it was
 * handed to somebody else, or the credential is not shared any more.
 */
export async function isStillBound(
  records: Pick<RecordStore, "rows">,
  jobId: string,
  credential: KnownCredential & { shared: boolean },
): Promise<boolean> {
  const [row] = await records.rows(`SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE job_id = ?`, [jobId]);
  if (row === undefined) return false;
  const { owner, spec } = toSandbox(row);
  if (!credential.shared && !mayReachWithin(owner, credential.owner)) return false;
  const allowed = hostsInMetadata(credential);
  if (allowed === undefined) return isOwnersOrNobodys(credential, ownerOf(owner));
  return allowed !== "unreadable" && boundHosts(spec, credential.id).every((host) => allowed.includes(host));
}
