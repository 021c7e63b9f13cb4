import type { Log } from "../../../core/log.ts";
import type { RerankSetup } from "./setup.ts";

/** Reranking, as this process sees it. */
export type RerankState = {
  /**
   * - `off`: no model is configured, or it cannot be found.
   * - `loading`: recall goes on without it.
   * - `failing`: it failed when it was last asked, and recall goes on without it.
   */
  state: "off" | "loading" | "ready" | "failing";
  model: string | undefined;
  /** Why it is failing; why it is off, if somebody asked for it. */
  reason: string | undefined;
};

/** What the operator is told about reranking: one line when it begins to fail, and one when it works again. */
export class RerankWatch {
  readonly #setup: RerankSetup;
  readonly #log: Log;
  #state: RerankState;
  #hasWarned = false;

  constructor(setup: RerankSetup, log: Log) {
    this.#setup = setup;
    this.#log = log;
    this.#state =
      "off" in setup
        ? { state: "off", model: undefined, reason: setup.off }
        : { state: "loading", model: setup.model.id, reason: undefined };
  }

  get state(): RerankState {
    return this.#state;
  }

  /** Says that memories are looked for: from now on it matters that nothing reranks. */
  begin(): void {
    if (this.#hasWarned || !("off" in this.#setup) || this.#setup.off === undefined) return;
    this.#hasWarned = true;
    this.#log.warn({ reason: this.#setup.off }, "recalls are not reranked");
  }

  note(state: RerankState): void {
    const { state: before } = this.#state;
    this.#state = state;
    const { model, reason } = state;
    if (state.state === "failing" && before !== "failing") {
      this.#log.warn(
        { model, reason },
        "recalls are not reranked for now: they keep the order of words, meaning and links",
      );
    } else if (state.state === "ready" && before === "failing") this.#log.info({ model }, "recalls are reranked again");
  }
}
