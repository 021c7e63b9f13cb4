import { Counter } from "prom-client";
import { metricSet } from "../../../src/core/metric-set.ts";

export const TOY_METRICS = metricSet((registers) => ({
  toysPainted: new Counter({ name: "engine_toy_painted_total", help: "Toys that were painted.", registers }),
}));
