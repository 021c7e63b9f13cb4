import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../base/api-error.ts";
import { clock } from "../base/clock.ts";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Icon } from "./icons.tsx";

export type ErrorBoxProps = {
  error: unknown;
  /** What failed, as a sentence. */
  title?: string;
  /** Repeats it; after an answer that asks to wait, the button counts the seconds down. */
  onRetry?: () => void;
};

/** A failure: what, where in the text, what was perhaps meant, the id under which the server's log has it. */
export function ErrorBox({ error, title, onRetry }: ErrorBoxProps): JSX.Element {
  const details = error instanceof ApiError ? error.details : undefined;
  const message = error instanceof Error ? error.message : String(error);
  const place = placeOf(details);
  return (
    <div class="error-box" role="alert">
      <Icon name="warning" />
      <div class="error-text">
        {title !== undefined && <p class="error-title">{title}</p>}
        <p class="error-message">{message}</p>
        {place !== undefined && <p>At {place}.</p>}
        {details?.suggestion !== undefined && (
          <p>
            Did you mean <code>{details.suggestion}</code>?
          </p>
        )}
        {details?.hint !== undefined && <p>{details.hint}</p>}
        {details?.requestId !== undefined && (
          <p class="error-id">
            <span>
              Request <code>{details.requestId}</code>
            </span>
            <CopyButton text={details.requestId} label="Copy the request id" />
          </p>
        )}
      </div>
      {onRetry !== undefined && <RetryButton waitMs={details?.retryAfterMs ?? 0} error={error} onRetry={onRetry} />}
    </div>
  );
}

function placeOf(details: ApiError["details"] | undefined): string | undefined {
  if (details?.line !== undefined) {
    return `line ${details.line}${details.column === undefined ? "" : `, column ${details.column}`}`;
  }
  return details?.column === undefined ? undefined : `column ${details.column}`;
}

type RetryProps = { waitMs: number; error: unknown; onRetry: () => void };

function RetryButton({ waitMs, error, onRetry }: RetryProps): JSX.Element {
  const [leftMs, setLeftMs] = useState(waitMs);
  useEffect(() => {
    const untilMs = clock.monotonicMs() + waitMs;
    setLeftMs(waitMs);
    if (waitMs === 0) return;
    const end = clock.every(250, () => {
      const now = Math.max(0, untilMs - clock.monotonicMs());
      setLeftMs(now);
      if (now === 0) end();
    });
    return end;
    // A new failure begins a new count.
  }, [waitMs, error]);
  const seconds = Math.ceil(leftMs / 1_000);
  return (
    <Button icon="refresh" onClick={onRetry} isDisabled={seconds > 0} reason={`The server asks to wait ${seconds} s.`}>
      {seconds > 0 ? `Retry in ${seconds} s` : "Retry"}
    </Button>
  );
}
