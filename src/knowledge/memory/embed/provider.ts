/** A memory, or a question to memory: some models embed them differently. */
export type EmbedKind = "document" | "query";

/** What computes vectors. Answers are checked by `Embedder`, whatever they hold. */
export interface EmbedProvider {
  /** Under which name its vectors are stored: those of two names are never compared. */
  readonly model: string;
  /** One answer for each text, in their order. Throws `EmbedFailure`. */
  embed(texts: readonly string[], kind: EmbedKind, signal: AbortSignal): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

/**
 * Why there are no vectors. Messages hold neither keys nor texts.
 *
 * - `temporary`: the provider is unreachable, slow or busy: asking again soon may help.
 * - `refused`: it does not accept the request, maybe for one of its texts.
 * - `unusable`: it is not what was configured, or answers wrongly.
 */
export class EmbedFailure extends Error {
  override readonly name = "EmbedFailure";
  readonly kind: "temporary" | "refused" | "unusable";
  /** When it asked to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: EmbedFailure["kind"],
    message: string,
    { retryAfterMs, cause }: { retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}
