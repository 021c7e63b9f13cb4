import { test } from "vitest";
import { checkRandomQueries } from "./random-queries.test-kit.ts";

const QUERIES = 300;

test(`${QUERIES} random queries more`, { timeout: 300_000 }, () => checkRandomQueries(QUERIES));
