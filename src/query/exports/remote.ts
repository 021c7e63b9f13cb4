import { roleIncludes } from "../../auth/caller.ts";
import { EngineError } from "../../core/errors.ts";
import type { JobOwner } from "../../fabric/job.ts";
import type { QueryLanguage } from "../contract/query.ts";
import { checkMaySend } from "../engines/remote-queries.ts";

/** What an export says of a query engine. */
type Asked = {
  run_on?: string | undefined;
  publish?: readonly string[] | undefined;
  language?: QueryLanguage | undefined;
  database: string;
};

/**
 * Throws what speaks against running an export on a query engine for that owner. The route says it at once, and whoever
 * has the job says it again: jobs are enqueued in other ways too.
 */
export function checkRemote({ run_on: engine, publish, language }: Asked, owner: JobOwner): void {
  if (engine === undefined) {
    if (publish === undefined) return;
    throw new EngineError(
      "bad_request_body",
      "publish needs run_on: queries on this server read unpublished rows anyway",
    );
  }
  checkMaySend(owner);
  if (language === "kql") {
    throw new EngineError("bad_request_body", "language: a query engine is sent the text as it is, and knows no KQL");
  }
  if (publish === undefined || roleIncludes(owner.role, "write")) return;
  throw new EngineError("forbidden", "publishing rows takes the role write");
}

/** The tables to publish. */
export function publishedTables({ publish = [], database }: Asked): { database: string; name: string }[] {
  return publish.map((name) => {
    const dot = name.indexOf(".");
    // No name of a database or a table has a dot.
    return dot === -1 ? { database, name } : { database: name.slice(0, dot), name: name.slice(dot + 1) };
  });
}
