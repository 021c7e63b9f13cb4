import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { sessionsContract } from "./contract.ts";

onPostgres("sessions", (open) => sessionsContract("postgres", open));
