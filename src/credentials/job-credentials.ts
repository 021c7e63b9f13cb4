import type { AuditLog, Origin } from "../auth/audit.ts";
import type { WorkerIdentity } from "../auth/caller.ts";
import type { Asker } from "../auth/owner.ts";
import { EngineError } from "../core/errors.ts";
import { checkNames } from "../fabric/leased-job.ts";
import type { Hold, Job } from "../fabric/job.ts";
import type { JobKinds } from "../fabric/kinds.ts";
import { isAdmitted } from "../fabric/workers.ts";
import type { OAuthTokens } from "./oauth/tokens.ts";
import type { Credential, Credentials } from "./credentials.ts";
import type { CredentialValue } from "./kinds.ts";

export type JobCredentialsOptions = {
  fabric: {
    readonly kinds: Pick<JobKinds, "get">;
    leasedJob(hold: Hold): Promise<Pick<Job, "id" | "kind" | "owner" | "credentials">>;
  };
  credentials: Pick<Credentials, "reveal">;
  tokens: Pick<OAuthTokens, "fresh">;
  audit: AuditLog;
  /** What else a job must show, by its kind: a sandbox that the credential still goes where its owner lets it go. */
  allows?: (job: Pick<Job, "id" | "kind">, credential: Credential) => Promise<boolean>;
  /** On whose behalf it is opened, by the kind of the job; undefined for the job's owner. */
  opener?: (job: Pick<Job, "kind">) => Asker | undefined;
};

/** Who holds the job: this program, or a worker. */
export type RevealedTo = { holder: "engine" | WorkerIdentity; origin: Origin };

/**
 * Secrets for those who hold jobs: what a job names, for as long as it is held, if its owner may use it. This program has
 * all of these. A worker has what its own owner owns; of others, and what others share, only for jobs of a kind that an
 * admin admitted it for: else whoever makes a worker could read what was shared for use alone.
 */
export class JobCredentials {
  readonly #options: JobCredentialsOptions;

  constructor(options: JobCredentialsOptions) {
    this.#options = options;
  }

  /**
   * The value, with no more than the rights of the job's owner or `opener`, written to the audit log. An access token that ends soon
   * is renewed before, where there is what it takes. Rejects with `lease_lost`; `not_found` for one that the job does not
   * name, that is no more, or that the holder may not have; and as `Credentials.reveal` and `OAuthTokens.fresh`.
   */
  async reveal(hold: Hold, id: string, { holder, origin }: RevealedTo): Promise<CredentialValue> {
    const { fabric, credentials, tokens, audit, allows, opener } = this.#options;
    const job = await fabric.leasedJob(hold);
    checkNames(job, id);
    const asker = opener?.(job) ?? job.owner;
    const revealed = await credentials.reveal(id, asker);
    const mayHave =
      holder === "engine" ||
      isAdmitted(holder, fabric.kinds.get(job.kind)) ||
      revealed.credential.owner === holder.owner;
    const isAllowed = mayHave && (allows === undefined || (await allows(job, revealed.credential)));
    if (!isAllowed) throw new EngineError("not_found", `there is no credential ${id} that this worker may have`);
    let { value } = revealed;
    if (value.kind === "oauth2" && value.refresh_token !== undefined) {
      await tokens.fresh(id, asker);
      // All of it is another one, perhaps.
      ({ value } = await credentials.reveal(id, asker));
    }
    const details = { job: hold.jobId, kind: job.kind };
    await audit.record({ origin, action: "credential.reveal", target: id, outcome: "ok", details });
    return value;
  }
}
