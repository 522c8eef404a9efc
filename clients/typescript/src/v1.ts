/** The contract's messages, enums and services of nodewise.v1, as generated. */
export * from "./gen/nodewise/v1/configuration_pb.js";
export * from "./gen/nodewise/v1/objective_pb.js";
export * from "./gen/nodewise/v1/options_pb.js";
export * from "./gen/nodewise/v1/plugin_pb.js";
export * from "./gen/nodewise/v1/prediction_pb.js";
export * from "./gen/nodewise/v1/prediction_service_pb.js";
export * from "./gen/nodewise/v1/problem_pb.js";
export * from "./gen/nodewise/v1/profile_pb.js";
export * from "./gen/nodewise/v1/profile_service_pb.js";
export * from "./gen/nodewise/v1/schedule_pb.js";
export * from "./gen/nodewise/v1/schedule_service_pb.js";
export * from "./gen/nodewise/v1/sharing_pb.js";
export * from "./gen/nodewise/v1/workload_pb.js";
