import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { dreamDutiesContract } from "./duties.test-kit.ts";

onPostgres("duties of dreams", (open) => dreamDutiesContract("postgres", open));
