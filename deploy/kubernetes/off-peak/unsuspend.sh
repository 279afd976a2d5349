#!/bin/sh
# Lets suspended Jobs begin that carry the label hec.energy/when: off-peak, where `hec run --when` was true: its exit status and its line
# are in the folder $ANSWER. No other Job is touched, and none is suspended again.
folder=${ANSWER:-/answer} failed=0
read -r status <"$folder/status" || exit
case $status in
    0) ;;
    1 | 2) exit 0 ;;
    *) exit "$status" ;;
esac
jobs=$(kubectl get jobs --all-namespaces --selector hec.energy/when=off-peak --output \
    jsonpath='{range .items[?(@.spec.suspend==true)]}{.metadata.namespace}{" "}{.metadata.name}{"\n"}{end}') || exit
while read -r namespace name; do
    [ -n "$name" ] || continue
    kubectl --namespace "$namespace" patch job "$name" --type merge --patch '{"spec":{"suspend":false}}' || failed=1
done <<END
$jobs
END
[ -z "$jobs" ] || cat "$folder/line"
exit "$failed"
