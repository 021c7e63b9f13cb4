import { expect, test } from "vitest";
import { createMetrics } from "../core/metrics.ts";
import { INGEST_METRICS } from "./metrics.ts";

test("however many databases there are, only so many have a label of their own", () => {
  const { databaseLabel } = INGEST_METRICS.of(createMetrics());
  const labels = new Set(Array.from({ length: 1_000 }, (_, i) => databaseLabel.of(`db${i}`)));
  expect(labels.size).toBe(201);
  expect(databaseLabel.of("db7")).toBe("db7");
  expect(databaseLabel.of("db999")).toBe("_other");
});
