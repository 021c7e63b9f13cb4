import { valuesOf } from "../config/option.ts";
import type { Capability } from "../feature/capability.ts";
import { FLIGHT_OPTIONS } from "./flight/options.ts";

export const QUERY_CAPABILITIES: readonly Capability[] = [
  {
    name: "flight",
    title: "Arrow Flight over gRPC",
    whyOff: async ({ config }) =>
      valuesOf(FLIGHT_OPTIONS, config).grpcAddr !== "off"
        ? undefined
        : "ENGINE_GRPC_ADDR is off: an address such as 127.0.0.1:9091 turns it on. Over gRPC-web it is on either way.",
  },
  {
    name: "query_engines",
    title: "External query engines",
    whyOff: async ({ records }) => {
      const rows = await records.rows("SELECT name FROM query_engines LIMIT 1", []);
      return rows.length > 0 ? undefined : "None is registered: an admin does it with `engine query-engine add`.";
    },
  },
];
