import { request } from "../../base/api.ts";
import { ApiError } from "../../base/api-error.ts";
import { pause } from "../../base/clock.ts";
import { storage } from "../../base/storage.ts";
import { countLines, pieceAt, pieceKey, withoutLine, type Piece, type Source } from "./pieces.ts";

export type UploadState = "running" | "paused" | "waiting" | "done" | "stopped";

/** Lines of the file that are not stored, and why. */
export type RefusedPiece = { fromLine: number; toLine: number; message: string };

export type UploadTarget = {
  database: string;
  table: string;
  inferTypes: boolean;
  /** Whether a line that does not parse is left out, instead of all lines of its piece. */
  leavesLinesOut: boolean;
};

type Warning = { code: string; field?: string; type?: string; count: number };

const MOST_TOLD = 100;
const MOST_LEFT_OUT = 1_000;
const FIRST_WAIT_MS = 1_000;
const MOST_WAIT_MS = 30_000;

/**
 * A file on its way into a table, piece after piece. What the server has acknowledged is remembered in this browser, so that
 * the same file goes on where it was; a piece of which nobody knows is sent again under its key.
 */
export class FileUpload {
  readonly file: Source;
  readonly target: UploadTarget;
  state: UploadState = "paused";
  /** Bytes of the file that are behind us. */
  sent = 0;
  rows = 0;
  /** Pieces that the server had already. */
  replayed = 0;
  /** Why it waits or has stopped. */
  error: unknown;
  readonly refused: RefusedPiece[] = [];
  refusedCount = 0;
  readonly leftOut: { line: number; message: string }[] = [];
  leftOutCount = 0;
  readonly warnings: Map<string, { title: string; count: number }> = new Map();

  #lines = 0;
  #aborter = new AbortController();
  readonly #onChange: () => void;
  readonly #place: string;

  constructor(file: Source, target: UploadTarget, onChange: () => void) {
    this.file = file;
    this.target = target;
    this.#onChange = onChange;
    const { name, size, lastModified } = file;
    this.#place = `upload.${JSON.stringify([target.database, target.table, name, size, lastModified])}`;
    const kept = placeOf(storage.get(this.#place), size);
    this.sent = kept.offset;
    this.#lines = kept.lines;
    this.resumedFrom = kept.offset;
  }

  /** What was sent at an earlier time. */
  readonly resumedFrom: number;

  pause(): void {
    this.#aborter.abort();
    this.#set("paused");
  }

  start(): void {
    if (this.state === "running" || this.state === "waiting" || this.state === "done") return;
    this.#aborter = new AbortController();
    this.error = undefined;
    this.#set("running");
    void this.#run(this.#aborter.signal);
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      let piece = await pieceAt(this.file, this.sent, this.#lines);
      if (piece?.offset === 0) checkBeginning(piece.bytes);
      while (piece !== undefined && !signal.aborted) {
        await this.#store(piece, signal);
        if (signal.aborted) return;
        this.sent = piece.end;
        this.#lines += countLines(piece.bytes);
        // A refused piece is the last place to come back to: the file may be sent again after the table was changed.
        if (this.refusedCount === 0) storage.set(this.#place, JSON.stringify([this.sent, this.#lines]));
        this.#onChange();
        piece = await pieceAt(this.file, this.sent, this.#lines);
      }
      if (signal.aborted) return;
      storage.set(this.#place, undefined);
      this.#set("done");
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
      this.#set("stopped");
    }
  }

  /** Resolves when the piece is stored, or refused for what is in it. */
  async #store(piece: Piece, signal: AbortSignal): Promise<void> {
    let { bytes } = piece;
    let waitMs = FIRST_WAIT_MS;
    for (;;) {
      try {
        if (isBlank(bytes)) return;
        this.#acknowledged(await this.#send({ ...piece, bytes }, signal));
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        if (error.isTemporary) {
          this.error = error;
          this.#set("waiting");
          await pause(error.details.retryAfterMs ?? waitMs, signal);
          if (signal.aborted) return;
          this.error = undefined;
          this.#set("running");
          waitMs = Math.min(waitMs * 2, MOST_WAIT_MS);
          continue;
        }
        // What is wrong with the table, the role or the server is wrong for all pieces.
        if (error.code !== "bad_request_body") throw error;
        const { line } = error.details;
        if (line === undefined || !this.target.leavesLinesOut || this.leftOutCount >= MOST_LEFT_OUT) {
          this.#refuse(piece, error);
          return;
        }
        bytes = withoutLine(bytes, line);
        this.leftOutCount++;
        if (this.leftOut.length < MOST_TOLD) {
          this.leftOut.push({ line: piece.linesBefore + line, message: error.message.replace(/^line \d+: /, "") });
        }
        this.#onChange();
      }
    }
  }

  async #send(piece: Piece, signal: AbortSignal): Promise<{ rows: number; isReplayed: boolean; warnings: Warning[] }> {
    const { database, table, inferTypes } = this.target;
    const response = await request("/v1/ingest", {
      method: "POST",
      body: piece.bytes,
      headers: {
        "Content-Type": "application/x-ndjson",
        "X-Database": database,
        "X-Table": table,
        "X-Idempotency-Key": pieceKey(this.file, piece),
        ...(inferTypes && { "X-Engine-Infer-Types": "true" }),
      },
      signal,
    });
    const ack = (await response.json()) as { rows_ingested: number; replayed: boolean; warnings?: Warning[] };
    return { rows: ack.rows_ingested, isReplayed: ack.replayed, warnings: ack.warnings ?? [] };
  }

  #acknowledged({ rows, isReplayed, warnings }: { rows: number; isReplayed: boolean; warnings: Warning[] }): void {
    this.rows += rows;
    if (isReplayed) this.replayed++;
    for (const { code, field, type, count } of warnings) {
      const title =
        code === "at_unreadable"
          ? "rows had no readable time and were stored with their arrival time"
          : fieldWarning(field, type);
      const known = this.warnings.get(title)?.count ?? 0;
      this.warnings.set(title, { title, count: known + count });
    }
  }

  #refuse(piece: Piece, error: ApiError): void {
    this.refusedCount++;
    if (this.refused.length >= MOST_TOLD) return;
    const fromLine = piece.linesBefore + 1;
    const toLine = piece.linesBefore + Math.max(1, countLines(piece.bytes));
    const { line } = error.details;
    const place = line === undefined ? "" : `line ${piece.linesBefore + line} of the file: `;
    this.refused.push({ fromLine, toLine, message: place + error.message.replace(/^line \d+: /, "") });
  }

  #set(state: UploadState): void {
    this.state = state;
    this.#onChange();
  }
}

function fieldWarning(field: string | undefined, type: string | undefined): string {
  return field === undefined ? "values of other fields are in props" : `values of ${field} did not fit ${type ?? ""}`;
}

/** Where an earlier attempt ended. */
function placeOf(kept: string | undefined, size: number): { offset: number; lines: number } {
  const [, offset, lines] = /^\[(\d+),(\d+)\]$/.exec(kept ?? "") ?? [];
  const isUsable = offset !== undefined && lines !== undefined && Number(offset) < size;
  return isUsable ? { offset: Number(offset), lines: Number(lines) } : { offset: 0, lines: 0 };
}

/** What is no NDJSON is told before anything is sent. */
function checkBeginning(bytes: Uint8Array): void {
  const first = bytes.find((byte) => byte > 0x20);
  if (first === undefined || first === 0x7b) return;
  const isPacked = (bytes[0] === 0x1f && bytes[1] === 0x8b) || (bytes[0] === 0x28 && bytes[1] === 0xb5);
  throw new Error(
    isPacked
      ? "The file is compressed: unpack it first, or send it with engine ingest push."
      : "The file is not NDJSON, one JSON object on each line. engine ingest push reads CSV and Parquet, too.",
  );
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
}
