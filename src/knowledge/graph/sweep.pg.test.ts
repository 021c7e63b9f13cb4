import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { graphSweepContract } from "./sweep.test-kit.ts";

onPostgres("sweep of graphs", (open) => graphSweepContract("postgres", open));
