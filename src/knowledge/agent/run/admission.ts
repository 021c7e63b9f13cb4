import { EngineError } from "../../../core/errors.ts";

export type AdmissionOptions = {
  /** Runs of this node at a time; 0 for no limit. */
  maxConcurrent: number;
  /** The same of one tenant: a caller in a database. */
  maxConcurrentPerTenant: number;
  retryAfterSecs: number;
};

/** Who may begin a run now. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #byTenant = new Map<string, number>();
  #running = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  /** Gives what lets the next one in; harmless when called twice. Throws `too_many_requests`. */
  enter(tenant: string): () => void {
    const { maxConcurrent, maxConcurrentPerTenant } = this.#options;
    const ofTenant = this.#byTenant.get(tenant) ?? 0;
    if (maxConcurrent > 0 && this.#running >= maxConcurrent) throw this.#refusal("this node answers", maxConcurrent);
    if (maxConcurrentPerTenant > 0 && ofTenant >= maxConcurrentPerTenant)
      throw this.#refusal("you may ask", maxConcurrentPerTenant);
    this.#running++;
    this.#byTenant.set(tenant, ofTenant + 1);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#running--;
      const left = (this.#byTenant.get(tenant) ?? 1) - 1;
      if (left === 0) this.#byTenant.delete(tenant);
      else this.#byTenant.set(tenant, left);
    };
  }

  #refusal(who: string, limit: number): EngineError {
    const headers = { "Retry-After": String(this.#options.retryAfterSecs) };
    return new EngineError("too_many_requests", `${who} ${limit} questions at a time`, { headers });
  }
}
