import { readFileSync } from "node:fs";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { countRows, cutByRows, cutBySize } from "../../support/bodies.ts";
import type { HttpAnswer } from "../../support/http-connection.ts";
import { logsRequest } from "../../support/otlp-request.ts";
import type { RequestPlan } from "./plan.ts";
import { headOf, withLength, type Target } from "./target.ts";

/** What is sent, and what an acknowledgement of it is worth. */
export type Sendable = {
  head: string;
  body: Buffer;
  rows: number;
  /** Before compression. */
  bytes: number;
  /** Why an answer of 200 is wrong; undefined when it is right. */
  complaintAbout: (answer: HttpAnswer) => string | undefined;
};

/** Makes the requests of a kind, one after the other. */
export type Requests = (index: number) => Sendable;

export function requestsOf(plan: RequestPlan, target: Target): Requests {
  switch (plan.kind) {
    case "ingest":
      return ingestRequests(plan, target);
    case "otlp":
      return otlpRequests(plan, target);
    case "query":
      return () => fixed(headOf(target, "POST", "/v1/query", { "Content-Type": "application/sql" }), plan.sql);
    case "health":
      return () => fixed(headOf(target, "GET", "/health", {}), "");
  }
}

function fixed(head: string, text: string): Sendable {
  const body = Buffer.from(text);
  return { head: withLength(head, body), body, rows: 0, bytes: 0, complaintAbout: () => undefined };
}

/** Bodies in turn; a second round of them is the same rows under other keys. */
function ingestRequests(plan: RequestPlan & { kind: "ingest" }, target: Target): Requests {
  const bodies = bodiesOf(plan);
  const head = headOf(target, "POST", "/v1/ingest", { "Content-Type": "application/x-ndjson", ...encodingOf(plan) });
  return (index) => {
    const { packed, rows, bytes } = inTurn(bodies, index);
    const table = `X-Table: ${inTurn(plan.tables, index)}\r\n`;
    const complaintAbout = (answer: HttpAnswer) => complaintAboutIngest(answer, rows);
    return {
      head: withLength(`${head}${table}${keyOf(plan, index)}`, packed),
      body: packed,
      rows,
      bytes,
      complaintAbout,
    };
  };
}

function bodiesOf({ file, cut, compression }: RequestPlan & { kind: "ingest" }) {
  const ndjson = readFileSync(file);
  const all = "rows" in cut ? cutByRows(ndjson, cut.rows) : cutBySize(ndjson, cut.sizeBytes);
  // The last may be shorter than what was asked for.
  const bodies = all.length > 1 ? all.slice(0, -1) : all;
  return bodies.map((body) => ({ packed: packed(body, compression), rows: countRows(body), bytes: body.length }));
}

function complaintAboutIngest({ body }: HttpAnswer, rows: number): string | undefined {
  const ack = JSON.parse(body) as { rows_ingested: number; replayed: boolean };
  return ack.replayed || ack.rows_ingested !== rows ? `a wrong acknowledgement: ${body}` : undefined;
}

function otlpRequests(plan: RequestPlan & { kind: "otlp" }, target: Target): Requests {
  const request = Buffer.from(logsRequest(plan.records));
  const body = packed(request, plan.compression);
  const type = { "Content-Type": "application/x-protobuf", ...encodingOf(plan) };
  const head = headOf(target, "POST", "/v1/logs", type);
  return (index) => ({
    head: withLength(`${head}${keyOf(plan, index)}`, body),
    body,
    rows: plan.records,
    bytes: request.length,
    complaintAbout: complaintAboutOtlp,
  });
}

/** A response without a field says that every record was taken. */
function complaintAboutOtlp({ body }: HttpAnswer): string | undefined {
  return body === "" ? undefined : `not every record was taken: ${body}`;
}

function keyOf({ keyPrefix }: { keyPrefix?: string }, index: number): string {
  return keyPrefix === undefined ? "" : `X-Idempotency-Key: ${keyPrefix}-${index}\r\n`;
}

function packed(body: Buffer, compression: "none" | "gzip" | "zstd"): Buffer {
  if (compression === "none") return body;
  return compression === "gzip" ? gzipSync(body) : zstdCompressSync(body);
}

function encodingOf({ compression }: { compression: string }): Record<string, string> {
  return compression === "none" ? {} : { "Content-Encoding": compression };
}

function inTurn<T>(all: readonly T[], index: number): T {
  const one = all[index % all.length];
  if (one === undefined) throw new Error("there is nothing to send");
  return one;
}
