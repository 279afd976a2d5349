"""A kubelet that only lists pods: stock gRPC, and messages built from descriptors written here, after Kubernetes'
k8s.io/kubelet/pkg/apis/podresources/v1/api.proto, with fields that HEC does not read."""
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STRING, INT64, UINT64, MESSAGE = 9, 3, 4, 11
MESSAGES = {
    "NUMANode": [("ID", 1, INT64, False)],
    "TopologyInfo": [("nodes", 1, "NUMANode", True)],
    "ContainerDevices": [
        ("resource_name", 1, STRING, False),
        ("device_ids", 2, STRING, True),
        ("topology", 3, "TopologyInfo", False),
    ],
    "ContainerMemory": [("memory_type", 1, STRING, False), ("size", 2, UINT64, False), ("topology", 3, "TopologyInfo", False)],
    "ContainerResources": [
        ("name", 1, STRING, False),
        ("devices", 2, "ContainerDevices", True),
        ("cpu_ids", 3, INT64, True),
        ("memory", 4, "ContainerMemory", True),
    ],
    "PodResources": [
        ("name", 1, STRING, False),
        ("namespace", 2, STRING, False),
        ("containers", 3, "ContainerResources", True),
    ],
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [("pod_resources", 1, "PodResources", True)],
}


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                added.type = MESSAGE
                added.type_name = ".v1." + kind
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    get = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: get(pool.FindMessageTypeByName("v1." + name)) for name in MESSAGES}


CLASSES = _classes()


def response(pods):
    """pods: (namespace, pod, {container: {resource: [ids]}})"""
    answer = CLASSES["ListPodResourcesResponse"]()
    for namespace, pod, containers in pods:
        listed = answer.pod_resources.add(name=pod, namespace=namespace)
        for name, resources in containers.items():
            container = listed.containers.add(name=name, cpu_ids=[0, 1, 64])
            container.memory.add(memory_type="memory", size=1 << 34).topology.nodes.add(ID=0)
            for resource, ids in resources.items():
                container.devices.add(resource_name=resource, device_ids=ids).topology.nodes.add(ID=1)
    return answer


class Kubelet:
    """pods: as of response, or a function of the call's context that gives a response."""

    def __init__(self, path, pods):
        self.calls = 0

        def answer(request, context):
            self.calls += 1
            return pods(context) if callable(pods) else response(pods)

        handler = grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=CLASSES["ListPodResourcesRequest"].FromString,
            response_serializer=CLASSES["ListPodResourcesResponse"].SerializeToString,
        )
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),)
        )
        self.server.add_insecure_port("unix:" + path)
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()
