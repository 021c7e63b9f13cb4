import { expect, test } from "vitest";
import { optionOf } from "../../../config/options.ts";
import { PEER_KEEP_ALIVE_MS } from "./peer.ts";

test("no server can be told to give up an idle connection before an edge does", () => {
  const { kind } = optionOf("httpKeepAliveSecs");
  const context = { baseDir: "/", userHome: "/" };
  const secs = Math.ceil(PEER_KEEP_ALIVE_MS / 1_000);
  expect(kind.parse(String(secs), context)).toBeUndefined();
  expect(kind.parse(String(secs + 1), context)).toBe(secs + 1);
});
