import type { AuditLog, Origin } from "../../auth/audit.ts";
import { checkNames } from "../../fabric/held.ts";
import type { Hold, Job } from "../../fabric/job.ts";
import type { OAuthTokens } from "../oauth/tokens.ts";
import type { Credentials } from "./credentials.ts";
import type { CredentialValue } from "./kinds.ts";

export type JobCredentialsOptions = {
  fabric: { held(hold: Hold): Promise<Pick<Job, "id" | "owner" | "credentials">> };
  credentials: Pick<Credentials, "reveal">;
  tokens: Pick<OAuthTokens, "fresh">;
  audit: AuditLog;
};

/** Secrets for those who hold jobs: what a job names, for as long as it is held. */
export class JobCredentials {
  readonly #options: JobCredentialsOptions;

  constructor(options: JobCredentialsOptions) {
    this.#options = options;
  }

  /**
   * The value, with no more than the rights of the job's owner, written to the audit log. An access token that ends soon
   * is renewed before, where there is what it takes. Rejects with `lease_lost`; `not_found` for one that the job does not
   * name, or that is no more; and as `Credentials.reveal` and `OAuthTokens.fresh`.
   */
  async reveal(hold: Hold, id: string, origin: Origin): Promise<CredentialValue> {
    const { fabric, credentials, tokens, audit } = this.#options;
    const job = await fabric.held(hold);
    checkNames(job, id);
    let { value } = await credentials.reveal(id, job.owner);
    if (value.kind === "oauth2" && value.refresh_token !== undefined) {
      await tokens.fresh(id, job.owner);
      // All of it is another one, perhaps.
      ({ value } = await credentials.reveal(id, job.owner));
    }
    const details = { job: hold.jobId };
    await audit.record({ origin, action: "credential.reveal", target: id, outcome: "ok", details });
    return value;
  }
}
