import { Counter, Gauge } from "prom-client";
import { metricSet } from "../../../core/metric-set.ts";
import { WatchedGauge } from "../../../core/watched-gauge.ts";

/** The local cache of extents. */
export const CACHE_METRICS = metricSet((registers) => ({
  queryCacheHits: new Counter({
    name: "engine_query_cache_hits_total",
    help: "Extents that queries found in the local cache, or that another query was fetching.",
    registers,
  }),
  queryCacheMisses: new Counter({
    name: "engine_query_cache_misses_total",
    help: "Extents that were fetched from the object store for a query, whole or in part.",
    registers,
  }),
  queryCacheFetchedBytes: new Counter({
    name: "engine_query_cache_fetched_bytes_total",
    help: "Bytes that queries requested from the object store.",
    registers,
  }),
  queryCacheEvictions: new Counter({
    name: "engine_query_cache_evictions_total",
    help: "Files evicted from the local cache of extents.",
    registers,
  }),
  queryCacheBytes: new Gauge({
    name: "engine_query_cache_bytes",
    help: "Bytes on disk of the local cache of extents.",
    registers,
  }),
  queryCacheLimit: new WatchedGauge({
    name: "engine_query_cache_limit_bytes",
    help: "What the local cache of extents may keep; running queries may go past it.",
    registers,
  }),
}));
