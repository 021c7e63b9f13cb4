/** What the server says of a failure: `{error: {code, message, request_id, …}}`. */
export type ErrorDetails = {
  code: string;
  message: string;
  requestId?: string | undefined;
  /** Where in the text that was sent, from 1. */
  line?: number | undefined;
  /** A position in the line, or the name of a column of a table. */
  column?: number | string | undefined;
  suggestion?: string | undefined;
  hint?: string | undefined;
  /** Milliseconds to wait, of answers that ask for that (429, 503). */
  retryAfterMs?: number | undefined;
};

/** A request that failed, whether the server said so or could not be reached (status 0, code `unreachable`). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly details: ErrorDetails;

  constructor(status: number, details: ErrorDetails, options?: ErrorOptions) {
    super(details.message, options);
    this.status = status;
    this.details = details;
  }

  get code(): string {
    return this.details.code;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    // Whatever passed its budget passes it again.
    if (this.code === "budget_exceeded") return false;
    return (
      this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503 || this.status === 504
    );
  }
}

/** The error of an answer that is not a success; its body is read. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  const text = await response.text().catch(() => "");
  const said = parseError(text);
  const requestId = said.request_id ?? headers.get("x-request-id") ?? undefined;
  return new ApiError(status, {
    code: said.code ?? `http_${status}`,
    message: said.message ?? messageOf(status, text),
    requestId,
    line: said.line,
    column: said.column,
    suggestion: said.suggestion,
    hint: said.hint,
    retryAfterMs: retryAfterMs(headers.get("retry-after")),
  });
}

/** The server did not answer. */
export function unreachable(cause: unknown): ApiError {
  const message = "the server cannot be reached: it may have stopped, or the network is down";
  return new ApiError(0, { code: "unreachable", message }, { cause });
}

type Said = {
  code?: string;
  message?: string;
  request_id?: string;
  line?: number;
  column?: number | string;
  suggestion?: string;
  hint?: string;
};

function parseError(text: string): Said {
  try {
    const { error } = JSON.parse(text) as { error?: Said };
    return error ?? {};
  } catch {
    // Not JSON: a proxy between has answered.
    return {};
  }
}

const SHOWN_CHARS = 300;

function messageOf(status: number, text: string): string {
  const shown = text.trim();
  if (shown === "" || shown.startsWith("<")) return `the server answered with status ${status}`;
  return shown.length > SHOWN_CHARS ? `${shown.slice(0, SHOWN_CHARS)}…` : shown;
}

const MAX_WAIT_MS = 3_600_000;

/** Seconds; the other form, a date, is not sent by this server. */
function retryAfterMs(header: string | null): number | undefined {
  const seconds = header === null ? Number.NaN : Number(header);
  return seconds >= 0 ? Math.min(seconds * 1_000, MAX_WAIT_MS) : undefined;
}
