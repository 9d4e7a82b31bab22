"""Asks a server what every gRPC server has: health, reflection, and webhooks through the official stub.

Usage: grpc_services.py HOST:PORT
"""

import sys

import grpc
from a2a.types import a2a_pb2, a2a_pb2_grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status

LIMIT = 10  # seconds for one call
SERVICES = {
    "lf.a2a.v1.A2AService",
    "a2a.v1.A2AService",
    "grpc.health.v1.Health",
    "iac_code.a2a.transports.proto.A2AJsonRpc",
}


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def check_health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ["", *SERVICES]:
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=LIMIT)
        expect(answer.status == health_pb2.HealthCheckResponse.SERVING, f"{service} is {answer}")
    try:
        stub.Check(health_pb2.HealthCheckRequest(service="no.Such"), timeout=LIMIT)
    except grpc.RpcError as error:
        expect(error.code() == grpc.StatusCode.NOT_FOUND, repr(error))
    else:
        raise AssertionError("a service that is not there is healthy")
    watched = stub.Watch(health_pb2.HealthCheckRequest(), timeout=LIMIT)
    expect(next(watched).status == health_pb2.HealthCheckResponse.SERVING, "not serving")
    watched.cancel()


def check_reflection(channel):
    database = ProtoReflectionDescriptorDatabase(channel)
    services = set(database.get_services())
    expect(SERVICES <= services, f"services: {services}")
    pool = DescriptorPool(database)
    for name, ours in a2a_pb2.DESCRIPTOR.message_types_by_name.items():
        theirs = pool.FindMessageTypeByName(f"lf.a2a.v1.{name}")
        for field in ours.fields:
            other = theirs.fields_by_name[field.name]
            same = (other.number, other.type, other.has_presence) == (field.number, field.type, field.has_presence)
            expect(same, f"{name}.{field.name} differs")
        expect(len(theirs.fields) == len(ours.fields), f"{name} has other fields")
    for service in SERVICES:
        expect(pool.FindServiceByName(service).methods, f"{service} has no methods")


def check_webhooks(channel):
    stub = a2a_pb2_grpc.A2AServiceStub(channel)
    message = a2a_pb2.Message(message_id="m", role=a2a_pb2.ROLE_USER, parts=[a2a_pb2.Part(text="hello")])
    answer, call = stub.SendMessage.with_call(
        a2a_pb2.SendMessageRequest(message=message), timeout=LIMIT, metadata=[("a2a-version", "1.0")]
    )
    task = answer.task.id
    config = a2a_pb2.TaskPushNotificationConfig(task_id=task, url="http://127.0.0.1:49999/hook", token="t")
    made = stub.CreateTaskPushNotificationConfig(config, timeout=LIMIT)
    expect(made.id and made.url == config.url, f"made {made}")
    named = a2a_pb2.GetTaskPushNotificationConfigRequest(task_id=task, id=made.id)
    expect(stub.GetTaskPushNotificationConfig(named, timeout=LIMIT).id == made.id, "another webhook")
    listed = a2a_pb2.ListTaskPushNotificationConfigsRequest(task_id=task)
    expect(len(stub.ListTaskPushNotificationConfigs(listed, timeout=LIMIT).configs) == 1, "not listed")
    gone = a2a_pb2.DeleteTaskPushNotificationConfigRequest(task_id=task, id=made.id)
    stub.DeleteTaskPushNotificationConfig(gone, timeout=LIMIT)
    expect(not stub.ListTaskPushNotificationConfigs(listed, timeout=LIMIT).configs, "still listed")


def check_errors(channel):
    stub = a2a_pb2_grpc.A2AServiceStub(channel)
    try:
        stub.SendMessage(a2a_pb2.SendMessageRequest(), timeout=LIMIT)
    except grpc.RpcError as error:
        status = rpc_status.from_call(error)
        expect(error.code() == grpc.StatusCode.INVALID_ARGUMENT, repr(error))
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        expect(status.details[0].Unpack(info) and info.reason == "INVALID_PARAMS", f"{status}")
        expect(status.details[1].Unpack(bad) and bad.field_violations[0].field == "message", f"{status}")
    else:
        raise AssertionError("a request without a message is taken")
    try:
        list(stub.SubscribeToTask(a2a_pb2.SubscribeToTaskRequest(id="none"), timeout=LIMIT))
    except grpc.RpcError as error:
        info = error_details_pb2.ErrorInfo()
        rpc_status.from_call(error).details[0].Unpack(info)
        expect(info.reason == "TASK_NOT_FOUND" and info.domain == "a2a-protocol.org", f"{info}")
    else:
        raise AssertionError("no error")


def check_compression(channel):
    stub = a2a_pb2_grpc.A2AServiceStub(channel)
    text = "long " * 10_000
    message = a2a_pb2.Message(message_id="z", role=a2a_pb2.ROLE_USER, parts=[a2a_pb2.Part(text=text)])
    answer = stub.SendMessage(
        a2a_pb2.SendMessageRequest(message=message), timeout=LIMIT, compression=grpc.Compression.Gzip
    )
    expect(answer.task.artifacts[0].parts[0].text == text, "the text is another one")


def main(address):
    failed = 0
    checks = [check_health, check_reflection, check_webhooks, check_errors, check_compression]
    with grpc.insecure_channel(address) as channel:
        for check in checks:
            name = check.__name__.removeprefix("check_")
            try:
                check(channel)
                print(f"ok {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL {name}: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
